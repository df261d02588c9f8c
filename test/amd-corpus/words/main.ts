// npm run amd:words: measures on a part of the corpus what a recogniser's words add to detection by
// sound. The recogniser knows what is said, but has the lag and the word errors of a real one.
// Audio and words take the same path as in a call.

import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import { listenTo, verdictFrom } from '../../../src/cli/amd/amd-listen.ts';
import { seededRandom } from '../../amd/made-up-audio.ts';
import { intervalText } from '../score/figures.ts';
import { readManifest, readSamples, type Truth } from '../score/manifest.ts';
import { type Judged, type Share, type Summary, summarise } from '../score/score.ts';
import { type Engine, type EngineKind, realEngine, startEngine } from './engine.ts';
import { listenWithWords } from './listen-with-words.ts';
import { misheard } from './mishearing.ts';
import { readPrompts, readSources, type Spoken, spokenIn } from './spoken.ts';

const { values } = parseArgs({
  options: {
    cache: { type: 'string', default: join(homedir(), '.cache', 'offhook', 'amd-corpus') },
    part: { type: 'string', default: 'first' },
    kind: { type: 'string', default: 'vosk' },
    'lag-ms': { type: 'string', default: '300' },
    errors: { type: 'string', default: '0,10,25,40' },
    class: { type: 'string' },
    language: { type: 'string' },
    // A Vosk server that really listens, instead of the simulated one.
    url: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

type Answer = {
  readonly file: string;
  readonly truth: Truth;
  readonly samples: Int16Array;
  readonly spoken: Spoken;
  /**
   * The seed of the answer's word errors. It does not depend on which other answers are measured.
   */
  readonly seed: number;
};

type Column = { readonly name: string; readonly judged: readonly Judged[] };

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

async function answersOf(part: string): Promise<Answer[]> {
  const path = join(values.cache, part, 'manifest.csv');
  const prompts = await readPrompts(values.cache);
  const sources = await readSources(path);
  const answers: Answer[] = [];
  for (const [index, { file, truth }] of (await readManifest(path)).entries()) {
    if (values.class !== undefined && truth.class !== values.class) continue;
    const spoken = spokenIn(truth, sources[index] ?? '', prompts);
    if (values.language !== undefined && !isIn(values.language, spoken)) continue;
    answers.push({ file, truth, samples: await readSamples(file), spoken, seed: index });
  }
  return answers;
}

function isIn(language: string, spoken: Spoken): boolean {
  return spoken.isKnown && spoken.language === language;
}

function judge(answer: Answer, events: Judged['events']): Judged {
  const { file, truth, samples } = answer;
  return { file, truth, durationMs: samples.length / 8, events, verdict: verdictFrom(events) };
}

function bySound(answers: readonly Answer[]): Column {
  const settings = { timers: defaultAmdTimers };
  const judged = answers.map((answer) => judge(answer, listenTo(answer.samples, settings)));
  return { name: 'no words', judged };
}

async function withWords(
  answers: readonly Answer[],
  engine: Engine,
  kind: EngineKind,
  share: number,
): Promise<Column> {
  const judged: Judged[] = [];
  for (const answer of answers) {
    const { words, language } = answer.spoken;
    const random = seededRandom(1_000 * answer.seed + Math.round(100 * share));
    const heard = misheard(words, { share, random, vocabulary: vocabularyOf(answers, language) });
    const events = await listenWithWords(answer.samples, { words: heard, language }, engine, kind);
    judged.push(judge(answer, events));
  }
  return { name: `${Math.round(100 * share)} % wrong`, judged };
}

function vocabularyOf(answers: readonly Answer[], language: string): readonly string[] {
  return answers.flatMap(({ spoken }) =>
    spoken.isKnown && spoken.language === language ? spoken.words.map(({ text }) => text) : [],
  );
}

function table(columns: readonly Column[]): string[] {
  const figures = columns.map(({ judged }) => summarise(judged));
  const row = (name: string, cells: readonly string[]) => `| ${[name, ...cells].join(' | ')} |`;
  const shares = (name: string, of: (summary: Summary) => Share) =>
    row(name, figures.map(of).map(text));
  const classes = figures[0]?.classes ?? [];
  return [
    row(
      '',
      columns.map(({ name }) => name),
    ),
    row(
      '---',
      columns.map(() => '---'),
    ),
    shares('right', ({ overall }) => overall),
    shares('people called machines', ({ humansCalledMachines }) => humansCalledMachines),
    shares('machines known', ({ machinesKnown }) => machinesKnown),
    row(
      '… that speak and never beep',
      columns.map(({ judged }) => text(neverBeep(judged))),
    ),
    shares('beeps found', ({ beepsFound }) => beepsFound),
    shares('false beeps', ({ falseBeeps }) => falseBeeps),
    row(
      "from the end of a person's greeting to the verdict, median and p95, ms",
      figures.map(({ humanVerdictDelayMs: { median, p95 } }) => `${median}, ${p95}`),
    ),
    ...classes
      .filter(({ label }) => label === 'human' || label === 'machine')
      .map(({ label, name }, index) =>
        shares(
          `${label}: ${name}`,
          ({ classes: all }) =>
            all.find((figures) => figures.label === label && figures.name === name)?.right ?? {
              count: 0,
              of: index,
            },
        ),
      ),
  ];
}

/** Counts the machines that no sound distinguishes from a person. */
function neverBeep(judged: readonly Judged[]): Share {
  const quiet = judged.filter(
    ({ truth }) =>
      truth.label === 'machine' &&
      truth.beep === undefined &&
      !['fax', 'SIT', 'beep alone'].includes(truth.class ?? ''),
  );
  return { count: quiet.filter(({ verdict }) => verdict === 'machine').length, of: quiet.length };
}

function text(share: Share): string {
  if (share.of === 0) return '';
  const percent = ((100 * share.count) / share.of).toFixed(share.of > 200 ? 1 : 0);
  return `${share.count} of ${share.of}, ${percent} % (${intervalText(share)})`;
}

const kind: EngineKind = values.kind === 'websocket' ? 'websocket' : 'vosk';
const answers = await answersOf(values.part);
const columns = [bySound(answers)];
if (values.url === undefined) {
  await using engine = await startEngine(kind, Number(values['lag-ms']));
  for (const errors of values.errors.split(',')) {
    columns.push(await withWords(answers, engine, kind, Number(errors) / 100));
  }
} else {
  const heard = await withWords(answers, realEngine(values.url), kind, 0);
  columns.push({ ...heard, name: 'this engine' });
}
if (values.json) {
  for (const { name, judged } of columns) {
    for (const { file, truth, verdict, events } of judged) {
      say(
        JSON.stringify({
          column: name,
          file,
          ...truth,
          expect: [...truth.expect],
          verdict,
          events,
        }),
      );
    }
  }
} else {
  const engine = values.url ?? `${kind}, ${values['lag-ms']} ms behind`;
  say(`${values.part}: ${answers.length} answers, ${engine}\n`);
  for (const line of table(columns)) say(line);
}
