// A Dockerfile as far as ours goes: its stages and their instructions.

import { textOf } from './compose.ts';

export type Instruction = { readonly word: string; readonly rest: string };
export type Stage = {
  readonly base: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
};

export function readDockerfile(): readonly Stage[] {
  const lines = textOf('.docker/Dockerfile')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const line of lines) {
    const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (word === 'FROM') {
      const [base = '', , name] = rest.split(' ');
      stages.push({ base, name, instructions: [] });
    } else stages.at(-1)?.instructions.push({ word, rest });
  }
  return stages;
}

export type Copy = { readonly from: string | undefined; readonly sources: readonly string[] };

export function copiesOf(stage: Stage): readonly Copy[] {
  return stage.instructions
    .filter(({ word }) => word === 'COPY')
    .map(({ rest }) => {
      const [, from] = /^--from=(\S+) /.exec(rest) ?? [];
      const paths = rest.replace(/^--from=\S+ /, '').split(' ');
      return { from, sources: paths.slice(0, -1) };
    });
}

/** The last instruction of a kind, where it is a command in exec form. */
export function commandOf(stage: Stage, word: 'CMD' | 'HEALTHCHECK'): readonly string[] {
  const { rest = '' } = stage.instructions.findLast((each) => each.word === word) ?? {};
  return JSON.parse(rest.replace(/^.*?(?=\[)/, '')) as string[];
}
