// Who picked up a call and for how long, in words for people.

import type { AmdEventName } from '../calls/detection/amd-event.ts';

/** `reason`: of the machine verdict. `beep`: a machine's was heard. */
export type Detected = {
  readonly verdict?: string | undefined;
  readonly reason?: string | undefined;
  readonly beep?: boolean | undefined;
};

const wordsByVerdict: Readonly<Partial<Record<AmdEventName, string>>> = {
  amd_human_detected: 'person',
  amd_machine_detected: 'machine',
  // It takes an earlier verdict back.
  amd_tone_detected: 'machine',
  amd_no_speech_detected: 'silence',
  amd_decision_timeout: 'undecided',
  amd_error: 'detection failed',
};
/** What a machine is, where its verdict says more than that it is one. */
const wordsByReason: Readonly<Record<string, string>> = {
  'fax-tone': 'fax',
  'sit-tone': 'network announcement',
  'call-screening': 'call screener',
};

/** @returns undefined if detection was off, or has not decided anything yet */
export function whoPickedUp({ verdict = '', reason = '', beep = false }: Detected) {
  const isMachine = verdict === 'amd_machine_detected';
  const finer =
    isMachine && Object.hasOwn(wordsByReason, reason) ? wordsByReason[reason] : undefined;
  const who = finer ?? wordsByVerdict[verdict as AmdEventName];
  return who !== undefined && beep ? `${who}, beep` : who;
}

/** 8.0 s, 2 min 5 s, 1 h 2 min */
export function talkTime(ms: number): string {
  // What rounds to a minute is one.
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const s = Math.round(ms / 1_000);
  const min = Math.floor(s / 60);
  return min < 60 ? `${min} min ${s % 60} s` : `${Math.floor(min / 60)} h ${min % 60} min`;
}
