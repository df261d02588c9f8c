// Compares what detection makes of recordings over two lines with the same losses. Because both
// lose the same packets, the difference of each recording counts.

import { settingsFrom } from '../../../src/cli/amd/amd-command.ts';
import { verdictFrom } from '../../../src/cli/amd/amd-listen.ts';
import { seededRandom } from '../../amd/made-up-audio.ts';
import { readManifest, readSamples, type Truth } from '../score/manifest.ts';
import { faultsOf } from '../score/score.ts';
import { type Line, listenOver, losses } from './lossy-call.ts';

export type LossOptions = {
  readonly manifests: readonly string[];
  /** Packets per loss, on average. */
  readonly burst: number;
  /** How often each recording is played, each time with other losses. */
  readonly seeds: number;
  /**
   * Compares a far end that suppresses silence with one that doesn't. Otherwise compares what
   * detection makes of concealed audio with what it makes of the audio that arrived.
   */
  readonly suppression: boolean;
};

/** The shares of one recording's plays that had a fault, over either line. */
type Faulty = readonly [number, number];

type Compared = { readonly name: string; readonly line: Omit<Line, 'lost'> };

const arrived: Compared = { name: 'arrived', line: { ear: 'arrived', isSuppressed: false } };
const concealed: Compared = { name: 'concealed', line: { ear: 'concealed', isSuppressed: false } };
const suppressed: Compared = { name: 'suppressed', line: { ear: 'arrived', isSuppressed: true } };

/** The quantile of the normal distribution for 95 %. */
const z = 1.96;

/** Returns a table: one row for each kind of fault, and for the wrong answers of each class. */
export async function compareLines(options: LossOptions, lossPercent: number): Promise<string[]> {
  const lines = [arrived, options.suppression ? suppressed : concealed] as const;
  const rows = new Map<string, Faulty[]>();
  let recording = 0;
  for (const manifest of options.manifests) {
    for (const { file, truth } of await readManifest(manifest)) {
      const samples = await readSamples(file);
      recording += 1;
      const lostIn = (seed: number) =>
        losses(lossPercent, options.burst, seededRandom(recording * options.seeds + seed));
      for (const [name, faulty] of faultsIn(
        samples,
        truth,
        lines,
        Array.from({ length: options.seeds }, (_, seed) => lostIn(seed)),
      )) {
        rows.set(name, [...(rows.get(name) ?? []), faulty]);
      }
    }
  }
  const { burst, seeds } = options;
  return [
    '',
    `${lossPercent} % lost, ${burst === 1 ? 'at random' : `${burst} in a row`}, ${seeds} seeds`,
    row('share of calls', 'recordings', ...lines.map(({ name }) => name), 'difference'),
    ...[...rows.keys()].toSorted().map((name) => rowOf(name, rows.get(name) ?? [])),
  ];
}

function faultsIn(
  samples: Int16Array,
  truth: Truth,
  lines: readonly [Compared, Compared],
  losses: readonly (readonly boolean[])[],
): ReadonlyMap<string, Faulty> {
  const counts = new Map<string, [number, number]>();
  const settings = settingsFrom({ timer: [] });
  const durationMs = samples.length / 8;
  for (const lost of losses) {
    for (const index of [0, 1] as const) {
      const events = listenOver({ ...lines[index].line, lost }, samples, settings);
      const verdict = verdictFrom(events);
      const faults = faultsOf({ file: '', durationMs, events, verdict, truth });
      for (const [name, isFaulty] of judged(truth, faults)) {
        const count = counts.get(name) ?? [0, 0];
        counts.set(name, count);
        if (isFaulty) count[index] += 1 / losses.length;
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
  const { mean, half } = interval(recordings.map(([before, after]) => after - before));
  const share = (index: 0 | 1) => percent(interval(recordings.map((faulty) => faulty[index])).mean);
  const change = `${mean >= 0 ? '+' : ''}${percent(mean)} ± ${percent(half)}`;
  const remark = mean - half > 0 ? ' worse' : mean + half < 0 ? ' better' : '';
  return `${row(name, String(recordings.length), share(0), share(1), change)}${remark}`;
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
