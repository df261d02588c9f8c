// Compares two versions of the detector on the same recordings: the figures that one version stored
// with --summary, and those of this run.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { intervalText } from './figures.ts';
import type { ClassFigures, Share, Summary } from './score.ts';

const share = z.object({ count: z.number(), of: z.number() });
const spread = z.object({ count: z.number(), median: z.number(), p95: z.number() });

/** The compared part of a summary. Optional members are missing in summaries of older versions. */
const summarySchema = z.object({
  files: z.number(),
  overall: share,
  humansCalledMachines: share,
  machinesKnown: share,
  machinesFirstCalledHuman: share.optional(),
  silenceHeardAsSilence: share,
  beepsFound: share,
  beepsMet: share,
  falseBeeps: share,
  humanVerdictDelayMs: spread,
  machineVerdictMs: spread,
  classes: z
    .array(
      z.object({
        label: z.string(),
        name: z.string(),
        right: share,
        beepsFound: share,
        falseBeeps: share,
      }),
    )
    .default([]),
  wrong: z.array(z.object({ file: z.string(), faults: z.array(z.string()) })),
});

export type EarlierSummary = z.infer<typeof summarySchema>;

export async function readSummary(path: string): Promise<EarlierSummary> {
  return summarySchema.parse(JSON.parse(await readFile(path, 'utf8')));
}

const shares = [
  ['right verdicts', 'overall'],
  ['people called machines', 'humansCalledMachines'],
  ['machines known by the end', 'machinesKnown'],
  ['machines first called people', 'machinesFirstCalledHuman'],
  ['silence heard as silence', 'silenceHeardAsSilence'],
  ['beeps found', 'beepsFound'],
  ['beeps reported in time', 'beepsMet'],
  ['false beeps', 'falseBeeps'],
] as const;

const noShare: Share = { count: 0, of: 0 };

const spreads = [
  ["a person's greeting end → verdict", 'humanVerdictDelayMs'],
  ["the answer → a machine's verdict", 'machineVerdictMs'],
] as const;

export function compareLines(before: EarlierSummary, now: Summary): string[] {
  const header = row('', 'before', 'now', 'change');
  return [
    header,
    ...shares.map(([name, member]) => shareRow(name, before[member] ?? noShare, now[member])),
    ...spreads.map(([name, member]) =>
      row(name, spreadText(before[member]), spreadText(now[member]), ''),
    ),
    ...classLines(before.classes, now.classes),
    ...changedFiles(before, now),
  ];
}

function shareRow(name: string, before: Share, now: Share): string {
  const points = 100 * (part(now) - part(before));
  const change =
    before.of === 0 || now.of === 0 ? '' : `${points >= 0 ? '+' : ''}${points.toFixed(1)}`;
  return row(name, shareText(before), shareText(now), change);
}

function classLines(before: EarlierSummary['classes'], now: readonly ClassFigures[]): string[] {
  const rows = now.flatMap((figures) => {
    const earlier = before.find(
      ({ label, name }) => label === figures.label && name === figures.name,
    );
    if (earlier === undefined) return [];
    const name = `${figures.label}: ${figures.name}`;
    return [
      shareRow(name, earlier.right, figures.right),
      ...(figures.beepsFound.of === 0
        ? []
        : [shareRow('  its beeps', earlier.beepsFound, figures.beepsFound)]),
      ...(figures.falseBeeps.count + earlier.falseBeeps.count === 0
        ? []
        : [shareRow('  false beeps', earlier.falseBeeps, figures.falseBeeps)]),
    ];
  });
  return rows.length === 0 ? [] : ['', ...rows];
}

/**
 * Lists the recordings whose result changed. No figure shows them, because equal counts may come
 * from different recordings.
 */
function changedFiles(before: EarlierSummary, now: Summary): string[] {
  const faultsBefore = new Map(before.wrong.map(({ file, faults }) => [file, faults.join('; ')]));
  const faultsNow = new Map(now.wrong.map(({ file, faults }) => [file, faults.join('; ')]));
  const better = [...faultsBefore].filter(([file]) => !faultsNow.has(file));
  const worse = [...faultsNow].filter(([file]) => !faultsBefore.has(file));
  return [
    '',
    `Right now (${better.length}):`,
    ...better.map(([file, faults]) => `  ${file}  was: ${faults}`),
    `Wrong now (${worse.length}):`,
    ...worse.map(([file, faults]) => `  ${file}  ${faults}`),
  ];
}

function row(name: string, before: string, now: string, change: string): string {
  return `${name.padEnd(40)}${before.padStart(22)}${now.padStart(22)}${change.padStart(9)}`.trimEnd();
}

function part({ count, of }: Share): number {
  return of === 0 ? 0 : count / of;
}

function shareText(figures: Share): string {
  if (figures.of === 0) return 'none';
  return `${(100 * part(figures)).toFixed(1)} % (${intervalText(figures)})`;
}

function spreadText({ count, median, p95 }: Summary['machineVerdictMs']): string {
  return count === 0 ? 'none' : `${median} ms, p95 ${p95}`;
}
