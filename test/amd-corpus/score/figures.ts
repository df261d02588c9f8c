// Formats the figures of a corpus for a terminal: aligned lines, with the interval of each share.

import type { Verdict } from '../../../src/cli/amd/amd-listen.ts';
import type { Label } from './manifest.ts';
import { metWithinMs, type Share, type Spread, type Summary } from './score.ts';

export type Interval = { readonly low: number; readonly high: number };

/** The quantile of the normal distribution for 95 %. */
const z = 1.96;

/**
 * Returns the interval that contains the true share 95 times out of 100. This is Wilson's interval.
 * Unlike the textbook interval, it holds for few recordings and for shares near 0 and 1. Shares are
 * from 0 to 1. Without any recordings the interval is 0 to 1.
 */
export function intervalOf({ count, of }: Share): Interval {
  if (of === 0) return { low: 0, high: 1 };
  const share = count / of;
  const middle = (share + z ** 2 / (2 * of)) / (1 + z ** 2 / of);
  const half =
    (z / (1 + z ** 2 / of)) * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

/** Formats the interval, for example `84–95 %`. */
export function intervalText(share: Share): string {
  const { low, high } = intervalOf(share);
  return `${Math.round(100 * low)}–${Math.round(100 * high)} %`;
}

export function summaryLines(summary: Summary): string[] {
  return [
    ...confusion(summary),
    '',
    ...measures(summary).map(({ name, value }) => `${name.padEnd(44)}${value}`),
    ...classLines(summary),
    ...wrongLines(summary),
  ];
}

function measures(summary: Summary): { readonly name: string; readonly value: string }[] {
  const { humanVerdictDelayMs: delay, beepDelayMs } = summary;
  const early = delay.early === 0 ? '' : `; ${delay.early} before the end`;
  const beeps = summary.beepsFound.of > 0;
  return [
    { name: 'right verdicts', value: withInterval(summary.overall) },
    { name: 'people called machines', value: withInterval(summary.humansCalledMachines) },
    { name: 'machines known by the end', value: withInterval(summary.machinesKnown) },
    { name: 'machines first called people', value: withInterval(summary.machinesFirstCalledHuman) },
    { name: '… and corrected', value: withInterval(summary.corrected) },
    { name: '"human" → its correction', value: spreadText(summary.correctionMs) },
    { name: 'silence heard as silence', value: withInterval(summary.silenceHeardAsSilence) },
    { name: "a person's greeting end → verdict", value: `${spreadText(delay)}${early}` },
    { name: "the answer → a machine's verdict", value: spreadText(summary.machineVerdictMs) },
    {
      name: 'ends of greetings without a beep found',
      value: withInterval(summary.greetingEndsFound),
    },
    { name: 'words counted', value: wordsText(summary.wordsOff) },
    { name: 'beeps found', value: withInterval(summary.beepsFound) },
    {
      name: `beeps reported within ${metWithinMs} ms of their end`,
      value: withInterval(summary.beepsMet),
    },
    { name: "a beep's end → tone", value: beeps ? spreadText(beepDelayMs) : 'no beeps' },
    { name: 'false beeps', value: withInterval(summary.falseBeeps) },
  ];
}

function classLines({ classes }: Summary): string[] {
  if (classes.length === 0) return [];
  const line = (name: string, right: string, first: string, beeps: string, none: string) =>
    `${name.padEnd(36)}${right.padEnd(32)}${first.padEnd(16)}${beeps.padEnd(20)}${none}`.trimEnd();
  const short = ({ count, of }: Share) => (of === 0 ? '' : `${count} of ${of}`);
  return [
    '',
    line('by class', 'right', 'at first', 'beeps found', 'false beeps'),
    ...classes.map(({ label, name, right, rightAtFirst, beepsFound, falseBeeps }) =>
      line(
        `${label}: ${name}`,
        // Recordings with the label `other` have no right verdict.
        label === 'other' ? '' : withInterval(right),
        label === 'other' ? '' : short(rightAtFirst),
        short(beepsFound),
        falseBeeps.count === 0 ? '' : short(falseBeeps),
      ),
    ),
  ];
}

function confusion(summary: Summary): string[] {
  const columns = columnsOf(summary);
  const line = (name: string, cells: readonly string[], end: string) =>
    `${name.padEnd(10)}${cells.map((cell) => cell.padStart(11)).join('')}  ${end.padStart(16)}`;
  const rows = (Object.entries(summary.verdicts) as [Label, Record<Verdict, number>][])
    .filter(([, counts]) => Object.values(counts).some((value) => value > 0))
    .map(([label, counts]) => {
      const right = label === 'other' ? '' : percent(summary.right[label]);
      return line(
        label,
        columns.map((verdict) => String(counts[verdict])),
        right,
      );
    });
  return [line('truth', columns, 'right').trimEnd(), ...rows.map((row) => row.trimEnd())];
}

/**
 * Returns the verdicts with a column. An error is not a verdict, so its column appears only if
 * something failed.
 */
function columnsOf(summary: Summary): Verdict[] {
  const failed = Object.values(summary.verdicts).some(({ error }) => error > 0);
  return ['human', 'machine', 'no-speech', 'timeout', ...(failed ? (['error'] as const) : [])];
}

function wrongLines({ wrong }: Summary): string[] {
  if (wrong.length === 0) return ['', 'Nothing wrong.'];
  const width = Math.min(72, Math.max(...wrong.map(({ file }) => file.length)));
  return [
    '',
    `Wrong (${wrong.length}):`,
    ...wrong.map(({ file, faults }) => `  ${file.padEnd(width)}  ${faults.join('; ')}`),
  ];
}

/** Formats a share with its interval. */
function withInterval(figures: Share): string {
  return figures.of === 0 ? 'none' : `${percent(figures)}  ${intervalText(figures)}`;
}

function percent({ count, of }: Share): string {
  if (of === 0) return 'none';
  return `${((100 * count) / of).toFixed(1).padStart(5)} %  ${`(${count}/${of})`.padStart(9)}`;
}

function wordsText({ count, median, p95 }: Spread): string {
  return count === 0 ? 'none' : `off by ${median} in the median, p95 ${p95} (${count})`;
}

function spreadText({ count, median, p95 }: Spread): string {
  return count === 0 ? 'none' : `median ${median} ms, p95 ${p95} ms (${count})`;
}
