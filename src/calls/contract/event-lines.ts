// Words for people about what a call states. What a log or a terminal of the gateway shows has no digit that was pressed and
// nothing that was said.

import type { AmdEvent } from '../detection/amd-event.ts';
import type { DataOf, EndData } from './call-event.ts';

export function describeDialing({ gateway, attempt, failedAttempts }: DataOf<'dialing'>): string {
  const last = failedAttempts?.at(-1);
  if (last === undefined) return `dialing over ${gateway}`;
  const why = [last.sipStatus, last.reason].filter((part) => part !== undefined).join(' ');
  return `dialing over ${gateway}, gateway ${attempt}, because ${last.gateway} failed: ${why}`;
}

export function describeDetection({ event, reason, words }: AmdEvent): string {
  const heard =
    words === undefined || words === 0 ? '' : `, ${words} ${words === 1 ? 'word' : 'words'}`;
  return `${event} (${reason}${heard})`;
}

export function describeEnd(type: 'completed' | 'failed', data: EndData): string {
  const { reason, reasonCode, outcome, callDurationMs } = data;
  if (type === 'failed') return `failed: ${reason} (${outcome})`;
  const why = outcome === 'completed' ? reasonCode : `${reasonCode}, ${outcome}`;
  return `completed: ${why}, ${seconds(callDurationMs ?? 0)} after the answer`;
}

export function describeStreamFailure({ reason, willRetry }: DataOf<'stream-failed'>): string {
  return `${reason}${willRetry ? ', tried again' : ''}`;
}

export function describePlayback({ sound, restart }: DataOf<'playback-started'>): string {
  return restart === undefined ? sound : `${sound}, anew (${restart})`;
}

export function endLine({ reason, reasonCode, callDurationMs, machineDetection }: EndData): string {
  const duration = callDurationMs === undefined ? [] : [`${(callDurationMs / 1_000).toFixed(3)} s`];
  const verdict = machineDetection === undefined ? [] : [machineDetection];
  return [reason, reasonCode, ...duration, ...verdict].join(', ');
}

export function afterFailure({ failedAttempts }: DataOf<'dialing'>): string {
  const last = failedAttempts?.at(-1);
  return last === undefined ? '' : `, after ${last.sipStatus ?? ''} ${last.reason}`;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
