// Reads the Dockerfile's stages and instructions. It supports only the syntax that this file uses.

import { textOf } from './compose.ts';

export type Instruction = { readonly word: string; readonly rest: string };
export type Stage = {
  readonly base: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
};

export function readDockerfile(): readonly Stage[] {
  const text = textOf('.docker/Dockerfile').replaceAll(/\\\n\s*/g, '');
  const [, nodeImage = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(text) ?? [];
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const line of lines) {
    const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (word === 'FROM') {
      const [base = '', , name] = rest.split(' ');
      stages.push({ base: base.replace(/^\$\{NODE_IMAGE\}$/, nodeImage), name, instructions: [] });
    } else stages.at(-1)?.instructions.push({ word, rest });
  }
  return stages;
}

export type Copy = {
  readonly from: string | undefined;
  readonly chmod: string | undefined;
  readonly sources: readonly string[];
};

export function copiesOf(stage: Stage): readonly Copy[] {
  return stage.instructions
    .filter(({ word }) => word === 'COPY')
    .map(({ rest }) => {
      const option = (name: string) => new RegExp(`--${name}=(\\S+) `).exec(rest)?.[1];
      const paths = rest.split(' ').filter((part) => !part.startsWith('--'));
      return { from: option('from'), chmod: option('chmod'), sources: paths.slice(0, -1) };
    });
}

/** Returns the command of the last CMD or HEALTHCHECK. It must be in exec form. */
export function commandOf(stage: Stage, word: 'CMD' | 'HEALTHCHECK'): readonly string[] {
  const { rest = '' } = stage.instructions.findLast((each) => each.word === word) ?? {};
  return JSON.parse(rest.replace(/^.*?(?=\[)/, '')) as string[];
}
