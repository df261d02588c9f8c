// Compares what detection makes of lossy calls if it gets what arrived, and if it gets what a bot
// hears. Both get the same losses, so that the difference of each recording counts.

import { settingsFrom } from '../../../src/cli/amd/amd-command.ts';
import { verdictFrom } from '../../../src/cli/amd/amd-listen.ts';
import { seededRandom } from '../../amd/made-up-audio.ts';
import { readManifest, readSamples, type Truth } from '../score/manifest.ts';
import { faultsOf } from '../score/score.ts';
import { type Ear, listenThroughLosses, losses } from './lossy-call.ts';

export type LossOptions = {
  readonly manifests: readonly string[];
  /** Packets per loss, on average. */
  readonly burst: number;
  /** How often each recording is played, each time with other losses. */
  readonly seeds: number;
};

/** The shares of one recording's plays that had a fault. */
type Faulty = Readonly<Record<Ear, number>>;

/** The quantile of the normal distribution for 95 %. */
const z = 1.96;

/** Returns a table: one row for each kind of fault, and for the wrong answers of each class. */
export async function compareEars(options: LossOptions, lossPercent: number): Promise<string[]> {
  const rows = new Map<string, Faulty[]>();
  let recording = 0;
  for (const manifest of options.manifests) {
    for (const { file, truth } of await readManifest(manifest)) {
      const samples = await readSamples(file);
      recording += 1;
      const lostIn = (seed: number) =>
        losses(lossPercent, options.burst, seededRandom(recording * options.seeds + seed));
      for (const [name, faulty] of faultsIn(samples, truth, options.seeds, lostIn)) {
        rows.set(name, [...(rows.get(name) ?? []), faulty]);
      }
    }
  }
  const { burst, seeds } = options;
  return [
    '',
    `${lossPercent} % lost, ${burst === 1 ? 'at random' : `${burst} in a row`}, ${seeds} seeds`,
    row('share of calls', 'recordings', 'arrived', 'concealed', 'difference'),
    ...[...rows.keys()].toSorted().map((name) => rowOf(name, rows.get(name) ?? [])),
  ];
}

function faultsIn(
  samples: Int16Array,
  truth: Truth,
  seeds: number,
  lostIn: (seed: number) => readonly boolean[],
): ReadonlyMap<string, Faulty> {
  const counts = new Map<string, Record<Ear, number>>();
  const settings = settingsFrom({ timer: [] });
  for (let seed = 0; seed < seeds; seed += 1) {
    const lost = lostIn(seed);
    for (const ear of ['arrived', 'concealed'] as const) {
      const events = listenThroughLosses(samples, lost, ear, settings);
      const verdict = verdictFrom(events);
      const durationMs = samples.length / 8;
      const faults = faultsOf({ file: '', durationMs, events, verdict, truth });
      for (const [name, isFaulty] of judged(truth, faults)) {
        const count = counts.get(name) ?? { arrived: 0, concealed: 0 };
        counts.set(name, count);
        if (isFaulty) count[ear] += 1 / seeds;
      }
    }
  }
  return counts;
}

/** Returns the faults that this recording can have, and whether it has them. */
function judged(truth: Truth, faults: readonly string[]): [name: string, isFaulty: boolean][] {
  const { label, beep, class: name = '' } = truth;
  const has = (text: string) => faults.some((fault) => fault.includes(text));
  return [
    ['false beep', has('false beep')],
    [`${label}: ${name}, any fault`, faults.length > 0],
    ...(label === 'other' ? [] : [[`${label}, wrong verdict`, has('heard as')] as const]),
    ...(label === 'human' ? [['human as machine', has('heard as machine')] as const] : []),
    ...(beep === undefined
      ? []
      : ([
          ['beep missed', has('beep missed')],
          ['beep reported over 150 ms off', has('beep reported')],
        ] as const)),
  ].map(([text, isFaulty]) => [String(text), isFaulty === true]);
}

function rowOf(name: string, recordings: readonly Faulty[]): string {
  const changes = recordings.map(({ arrived, concealed }) => concealed - arrived);
  const { mean, half } = interval(changes);
  const share = (ear: Ear) => percent(interval(recordings.map((faulty) => faulty[ear])).mean);
  const isWorse = mean - half > 0;
  const isBetter = mean + half < 0;
  const change = `${mean >= 0 ? '+' : ''}${percent(mean)} ± ${percent(half)}`;
  const remark = isWorse ? ' worse' : isBetter ? ' better' : '';
  return row(
    name,
    String(recordings.length),
    share('arrived'),
    share('concealed'),
    `${change}${remark}`,
  );
}

/** Returns the mean, and half of its interval of 95 %, over recordings. */
function interval(values: readonly number[]): { readonly mean: number; readonly half: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance =
    values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1);
  return { mean, half: z * Math.sqrt(variance / values.length) };
}

function percent(share: number): string {
  return (100 * share).toFixed(1);
}

function row(name: string, ...cells: readonly string[]): string {
  return `${name.padEnd(40)}${cells.map((cell) => cell.padStart(14)).join('')}`;
}
