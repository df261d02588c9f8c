// Describes who or what picked up a call, and how long the call lasted.

import type { AmdEventName } from '../calls/detection/amd-event.ts';

/**
 * A detection result. `reason` explains a machine verdict, and `beep` is true if a beep was
 * detected.
 */
export type Detected = {
  readonly verdict?: string | undefined;
  readonly reason?: string | undefined;
  readonly beep?: boolean | undefined;
};

const wordsByVerdict: Readonly<Partial<Record<AmdEventName, string>>> = {
  amd_human_detected: 'person',
  amd_machine_detected: 'machine',
  // A tone replaces an earlier verdict.
  amd_tone_detected: 'machine',
  amd_no_speech_detected: 'silence',
  amd_decision_timeout: 'undecided',
  amd_error: 'detection failed',
};
/** Returns the kind of machine, if the reason reveals it. */
const wordsByReason: Readonly<Record<string, string>> = {
  'fax-tone': 'fax',
  'sit-tone': 'network announcement',
  'call-screening': 'call screener',
};

/** @returns undefined if detection was off or has no verdict yet */
export function whoPickedUp({ verdict = '', reason = '', beep = false }: Detected) {
  const isMachine = verdict === 'amd_machine_detected';
  const kind =
    isMachine && Object.hasOwn(wordsByReason, reason) ? wordsByReason[reason] : undefined;
  const who = kind ?? wordsByVerdict[verdict as AmdEventName];
  return who !== undefined && beep ? `${who}, beep` : who;
}

/** Formats a duration as 8.0 s, 2 min 5 s or 1 h 2 min. */
export function talkTime(ms: number): string {
  // From 59,950 ms on, we'd round to 60.0 s.
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const s = Math.round(ms / 1_000);
  const min = Math.floor(s / 60);
  return min < 60 ? `${min} min ${s % 60} s` : `${Math.floor(min / 60)} h ${min % 60} min`;
}
