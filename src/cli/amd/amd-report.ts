// Results as text for a terminal: lines that align, units that people read.

import type { AmdEvent } from '../../calls/contract/amd-event.ts';
import { intervalText } from './amd-interval.ts';
import type { Verdict } from './amd-listen.ts';
import type { Label } from './amd-manifest.ts';
import { metWithinMs, type Share, type Spread, type Summary } from './amd-score.ts';

const eventWords: Readonly<Record<AmdEvent['event'], string>> = {
  amd_human_detected: 'human',
  amd_machine_detected: 'machine',
  amd_no_speech_detected: 'no speech',
  amd_decision_timeout: 'undecided',
  amd_machine_stopped_speaking: 'stopped speaking',
  amd_tone_detected: 'tone',
  amd_error: 'error',
  amd_stopped: 'stopped',
};

export function eventWord({ event }: AmdEvent): string {
  return eventWords[event];
}

export function eventLine(event: AmdEvent): string {
  const at = seconds(event.elapsedMs).padStart(9);
  const evidence = evidenceParts(event).join(', ');
  return `${at}  ${eventWord(event).padEnd(16)}  ${evidence}`.trimEnd();
}

export function evidenceParts(event: AmdEvent): string[] {
  const parts: string[] = [event.reason];
  if (event.words !== undefined) parts.push(plural(event.words, 'word'));
  if (event.confidence !== undefined) parts.push(`confidence ${event.confidence.toFixed(2)}`);
  if (event.speechMs !== undefined) parts.push(`${seconds(event.speechMs)} of speech`);
  if (event.pauseMs) parts.push(`${seconds(event.pauseMs)} of silence`);
  if (event.tone !== undefined) {
    parts.push(`${Math.round(event.tone.hz)} Hz for ${Math.round(event.tone.ms)} ms`);
  }
  if (event.transcript !== undefined) parts.push(`“${event.transcript}”`);
  if (event.corrects !== undefined) parts.push(`corrects ${eventWords[event.corrects]}`);
  return parts;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

export function duration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const whole = Math.round(ms / 1_000);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** The benchmark's result. */
export function summaryLines(summary: Summary): string[] {
  return [
    ...confusion(summary),
    '',
    ...measures(summary).map(({ name, value }) => `${name.padEnd(44)}${value}`),
    ...classLines(summary),
    ...wrongLines(summary),
  ];
}

export function measures(summary: Summary): { readonly name: string; readonly value: string }[] {
  const { humanVerdictDelayMs: delay, beepDelayMs } = summary;
  const early = delay.early === 0 ? '' : `; ${delay.early} before the end`;
  const beeps = summary.beepsFound.of > 0;
  return [
    { name: 'right verdicts', value: sure(summary.overall) },
    { name: 'people called machines', value: sure(summary.humansCalledMachines) },
    { name: 'machines known by the end', value: sure(summary.machinesKnown) },
    { name: 'silence heard as silence', value: sure(summary.silenceHeardAsSilence) },
    { name: "a person's greeting end → verdict", value: `${spreadText(delay)}${early}` },
    { name: "the answer → a machine's verdict", value: spreadText(summary.machineVerdictMs) },
    { name: 'ends of greetings without a beep told', value: sure(summary.greetingEndsFound) },
    { name: 'words counted', value: wordsText(summary.wordsOff) },
    { name: 'beeps found', value: sure(summary.beepsFound) },
    { name: `beeps told within ${metWithinMs} ms of their end`, value: sure(summary.beepsMet) },
    { name: "a beep's end → tone", value: beeps ? spreadText(beepDelayMs) : 'no beeps' },
    { name: 'beeps that were none', value: sure(summary.falseBeeps) },
  ];
}

function classLines({ classes }: Summary): string[] {
  if (classes.length === 0) return [];
  const line = (name: string, right: string, beeps: string, none: string) =>
    `${name.padEnd(36)}${right.padEnd(32)}${beeps.padEnd(20)}${none}`.trimEnd();
  const short = ({ count, of }: Share) => (of === 0 ? '' : `${count} of ${of}`);
  return [
    '',
    line('by class', 'right', 'beeps found', 'beeps that were none'),
    ...classes.map(({ label, name, right, beepsFound, falseBeeps }) =>
      line(
        `${label}: ${name}`,
        // No verdict is right or wrong where it is neither person nor machine.
        label === 'other' ? '' : sure(right),
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

/** An error is no verdict: its column is there only when something failed. */
export function columnsOf(summary: Summary): Verdict[] {
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

/** With the interval that the true share lies in. */
function sure(figures: Share): string {
  return figures.of === 0 ? 'none' : `${percent(figures)}  ${intervalText(figures)}`;
}

export function percent({ count, of }: Share): string {
  if (of === 0) return 'none';
  return `${((100 * count) / of).toFixed(1).padStart(5)} %  ${`(${count}/${of})`.padStart(9)}`;
}

function wordsText({ count, median, p95 }: Spread): string {
  return count === 0 ? 'none' : `off by ${median} in the median, p95 ${p95} (${count})`;
}

function spreadText({ count, median, p95 }: Spread): string {
  return count === 0 ? 'none' : `median ${median} ms, p95 ${p95} ms (${count})`;
}
