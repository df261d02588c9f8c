// Compares what the detector heard with the manifest's labels. It returns counts and milliseconds
// only; figures.ts turns them into text.

import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import { correctionFrom, firstVerdictFrom, type Verdict } from '../../../src/cli/amd/amd-listen.ts';
import type { Label, Truth } from './manifest.ts';

/**
 * A beep is reported in time if its event is at most this far from its end. A later message loses
 * its beginning; an earlier one talks into the beep.
 */
export const metWithinMs = 150;

export type Judged = {
  readonly file: string;
  readonly durationMs: number;
  readonly events: readonly AmdEvent[];
  readonly verdict: Verdict;
  readonly truth: Truth;
};

export type Share = { readonly count: number; readonly of: number };
export type Spread = { readonly count: number; readonly median: number; readonly p95: number };

/** Figures for the recordings of one class, as the manifest names it. */
export type ClassFigures = {
  readonly label: Label;
  readonly name: string;
  /**
   * The recordings with the right verdict. With the label `other` all of them count, because no
   * verdict is right for them.
   */
  readonly right: Share;
  /** The recordings whose first verdict was right, before any correction. */
  readonly rightAtFirst: Share;
  readonly beepsFound: Share;
  readonly falseBeeps: Share;
};

export type Summary = {
  readonly files: number;
  readonly audioMs: number;
  readonly verdicts: Readonly<Record<Label, Readonly<Record<Verdict, number>>>>;
  /**
   * The recordings with the right verdict, by label. `other` is missing: it has no right verdict,
   * only its beeps are judged.
   */
  readonly right: Readonly<Record<Exclude<Label, 'other'>, Share>>;
  readonly overall: Share;
  readonly humansCalledMachines: Share;
  readonly machinesKnown: Share;
  /** The machines whose first verdict was "human", and those of them that were corrected. */
  readonly machinesFirstCalledHuman: Share;
  readonly corrected: Share;
  /** From the verdict "human" to its correction. */
  readonly correctionMs: Spread;
  readonly silenceHeardAsSilence: Share;
  /**
   * From the end of a person's greeting to the verdict. `early` counts verdicts before that end:
   * the person went on.
   */
  readonly humanVerdictDelayMs: Spread & { readonly early: number };
  /** From the answer to a machine's verdict. */
  readonly machineVerdictMs: Spread;
  /** Absolute difference between the words counted at the end and the words in the manifest. */
  readonly wordsOff: Spread;
  readonly greetingEndsFound: Share;
  readonly beepsFound: Share;
  readonly beepsMet: Share;
  /** From the end of a beep to the event. */
  readonly beepDelayMs: Spread;
  /** Recordings without a beep for which one was reported. Ambiguous recordings do not count. */
  readonly falseBeeps: Share;
  /** In the manifest's order. Empty if the manifest names no classes. */
  readonly classes: readonly ClassFigures[];
  readonly wrong: readonly { readonly file: string; readonly faults: readonly string[] }[];
};

const noVerdicts: Readonly<Record<Verdict, number>> = {
  human: 0,
  machine: 0,
  'no-speech': 0,
  timeout: 0,
  error: 0,
};

export function summarise(items: readonly Judged[]): Summary {
  const labelled = (label: Label) => items.filter(({ truth }) => truth.label === label);
  const [humans, machines, silences] = [
    labelled('human'),
    labelled('machine'),
    labelled('silence'),
  ];
  const clear = items.filter(({ truth }) => !truth.expect.has('ambiguous'));
  const withBeep = clear.filter(({ truth }) => truth.beep !== undefined);
  const beepDelays = withBeep.flatMap((item) => beepDelayMs(item) ?? []);
  const humanDelays = humans.flatMap((item) => humanDelayMs(item) ?? []);
  return {
    files: items.length,
    audioMs: items.reduce((sum, { durationMs }) => sum + durationMs, 0),
    verdicts: {
      human: count(humans),
      machine: count(machines),
      silence: count(silences),
      other: count(labelled('other')),
    },
    right: {
      human: share(humans, isRight),
      machine: share(machines, isRight),
      silence: share(silences, isRight),
    },
    overall: share([...humans, ...machines, ...silences], isRight),
    humansCalledMachines: share(humans, ({ verdict }) => verdict === 'machine'),
    machinesKnown: share(machines, isRight),
    machinesFirstCalledHuman: share(machines, isFirstCalledHuman),
    corrected: share(machines.filter(isFirstCalledHuman), isRight),
    correctionMs: spread(machines.flatMap((item) => correctionMs(item) ?? [])),
    silenceHeardAsSilence: share(silences, isRight),
    humanVerdictDelayMs: {
      ...spread(humanDelays.filter((delay) => delay >= 0)),
      early: humanDelays.filter((delay) => delay < 0).length,
    },
    machineVerdictMs: spread(machines.flatMap((item) => eventMs(item, 'amd_machine_detected'))),
    wordsOff: spread(items.flatMap((item) => wordsOff(item) ?? [])),
    greetingEndsFound: share(
      machines.filter(({ truth }) => truth.expect.has('stopped')),
      (item) => eventMs(item, 'amd_machine_stopped_speaking').length > 0,
    ),
    beepsFound: share(withBeep, (item) => beepDelayMs(item) !== undefined),
    beepsMet: share(withBeep, (item) => Math.abs(beepDelayMs(item) ?? Infinity) <= metWithinMs),
    beepDelayMs: spread(beepDelays),
    falseBeeps: share(clear, hasFalseBeep),
    classes: classesOf(items),
    wrong: items
      .map((item) => ({ file: item.file, faults: faultsOf(item) }))
      .filter(({ faults }) => faults.length > 0),
  };
}

function classesOf(items: readonly Judged[]): ClassFigures[] {
  const groups = new Map<string, Judged[]>();
  for (const item of items) {
    const { label, class: name } = item.truth;
    if (name === undefined) continue;
    const key = `${label} ${name}`;
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const clear = group.filter(({ truth }) => !truth.expect.has('ambiguous'));
    const withBeep = clear.filter(({ truth }) => truth.beep !== undefined);
    return {
      label: first.truth.label,
      name: first.truth.class ?? '',
      right: share(group, isRight),
      rightAtFirst: share(group, (item) => {
        const { verdict } = firstVerdictFrom(item.events);
        return isRight({ ...item, verdict });
      }),
      beepsFound: share(withBeep, (item) => beepDelayMs(item) !== undefined),
      falseBeeps: share(clear, hasFalseBeep),
    };
  });
}

/** Describes what is wrong with one recording. Empty if nothing is. */
export function faultsOf(item: Judged): readonly string[] {
  const faults: string[] = [];
  const { truth, verdict } = item;
  if (!isRight(item)) faults.push(`${truth.label} heard as ${verdict}`);
  if (truth.expect.has('ambiguous')) return faults;
  if (hasFalseBeep(item)) faults.push('false beep');
  if (truth.beep === undefined) return faults;
  const delay = beepDelayMs(item);
  if (delay === undefined) faults.push('beep missed');
  else if (Math.abs(delay) > metWithinMs) {
    faults.push(`beep reported ${Math.abs(delay)} ms ${delay < 0 ? 'before' : 'after'} its end`);
  }
  return faults;
}

function isRight({ truth, verdict }: Judged): boolean {
  switch (truth.label) {
    case 'human':
      // If a person is silent for longer than the time-out, the detector cannot hear the person in
      // time.
      return verdict === 'human' || (truth.expect.has('no_speech') && verdict === 'no-speech');
    case 'machine':
      return verdict === 'machine';
    case 'silence':
      return verdict === 'no-speech';
    case 'other':
      return true;
  }
}

function isFirstCalledHuman({ events }: Judged): boolean {
  return firstVerdictFrom(events).verdict === 'human';
}

function correctionMs({ events }: Judged): number | undefined {
  const correction = correctionFrom(events);
  if (correction === undefined) return undefined;
  return correction.elapsedMs - firstVerdictFrom(events).elapsedMs;
}

function humanDelayMs(item: Judged): number | undefined {
  const [atMs] = eventMs(item, 'amd_human_detected');
  const endMs = item.truth.greetingEndMs;
  return atMs === undefined || endMs === undefined ? undefined : atMs - endMs;
}

/**
 * @returns undefined if the number of words is unknown, or if nothing was stated after the last
 * word
 */
function wordsOff({ truth, events }: Judged): number | undefined {
  const endMs = truth.greetingEndMs;
  if (endMs === undefined || truth.words === undefined) return undefined;
  const counted = events.find(
    ({ words, elapsedMs }) => words !== undefined && elapsedMs >= endMs,
  )?.words;
  return counted === undefined ? undefined : Math.abs(counted - truth.words);
}

/** @returns undefined if the manifest has no beep, or if none was reported from its start on */
function beepDelayMs(item: Judged): number | undefined {
  const { beep } = item.truth;
  const [atMs] = eventMs(item, 'amd_tone_detected');
  if (beep === undefined || atMs === undefined || atMs < beep.startMs) return undefined;
  return atMs - beep.endMs;
}

function hasFalseBeep(item: Judged): boolean {
  const [atMs] = eventMs(item, 'amd_tone_detected');
  return atMs !== undefined && beepDelayMs(item) === undefined;
}

function eventMs(item: Judged, name: AmdEvent['event']): number[] {
  return item.events.filter(({ event }) => event === name).map(({ elapsedMs }) => elapsedMs);
}

function count(items: readonly Judged[]): Record<Verdict, number> {
  const counts = { ...noVerdicts };
  for (const { verdict } of items) counts[verdict] += 1;
  return counts;
}

function share(items: readonly Judged[], test: (item: Judged) => boolean): Share {
  return { count: items.filter(test).length, of: items.length };
}

/** Uses the nearest rank. Without values, all figures are 0. */
function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { count: sorted.length, median: at(0.5), p95: at(0.95) };
}
