// What is known about the recording of a call so far: whether it has begun, whether it is paused,
// whether digits are hidden, and what the last notification says about it. Pure.
//
// Phases:
// - none: nothing has begun yet.
// - announcing: the announcement is playing. Recording begins when it has been played to the end.
// - running: the media has been told to record. It ends with a report of the media.
// - over: the recording was stopped, failed, or was called off before it began.

import type { CallEvent } from '../contract/call-event.ts';
import type { RecordingBegin, RecordingFailure } from './recording.ts';
import type { RecordAction, RecordingSummary } from './recording-contract.ts';

export type RecordingProgress = {
  readonly phase: 'none' | 'announcing' | 'running' | 'over';
  /** What began it. Undefined before that. */
  readonly from?: RecordingBegin;
  readonly pauseOnKeys?: boolean;
  readonly key?: string;
  /** Ids of the last commands, which their events carry. */
  readonly commandIds?: Readonly<Partial<Record<RecordAction, string>>>;
  /** When the announcement had been played to its end. */
  readonly announcedAt?: Date;
  /** True once the recording has begun according to the media. */
  readonly hasStarted?: boolean;
  /** A command paused the recording, and none has resumed it. */
  readonly isHeld?: boolean;
  /** The media has paused, since this offset. */
  readonly pausedSinceMs?: number | undefined;
  /** Duration of the pauses that are over. */
  readonly pausedMs: number;
  readonly isStopping?: boolean;
  /** Keys pressed before this instant are hidden, because the recording was paused. */
  readonly hiddenUntil?: Date;
  /** Set if the recording was stopped or failed after it had begun. */
  readonly durationMs?: number;
  readonly failure?: RecordingFailure;
};

export const nothingRecorded: RecordingProgress = { phase: 'none', pausedMs: 0 };

/** Returns the progress after an event of the recording. */
export function afterRecording(progress: RecordingProgress, event: CallEvent): RecordingProgress {
  const at = new Date(event.time);
  if (event.type === 'recording-started') {
    const { from, pauseOnKeys, key } = event.data;
    const known = { from, pauseOnKeys, ...(key === undefined ? {} : { key }) };
    return { ...progress, ...known, phase: 'running', hasStarted: true };
  }
  if (event.type === 'recording-paused') {
    return { ...progress, pausedSinceMs: event.data.offsetMs };
  }
  if (event.type === 'recording-resumed') {
    return { ...progress, ...resumed(progress, event.data.offsetMs), hiddenUntil: at };
  }
  if (event.type === 'recording-stopped') {
    const { durationMs, pausedMs } = event.data;
    const times = { durationMs, pausedMs, hiddenUntil: at };
    return { ...progress, ...times, phase: 'over', isHeld: false, pausedSinceMs: undefined };
  }
  if (event.type !== 'recording-failed') return progress;
  const { durationMs, reason } = event.data;
  // `pausedSinceMs` stays, because the digits stay hidden.
  const { pausedMs } = resumed(progress, durationMs);
  return { ...progress, pausedMs, durationMs, failure: reason, phase: 'over' };
}

function resumed({ pausedSinceMs, pausedMs }: RecordingProgress, offsetMs: number) {
  const lastMs = pausedSinceMs === undefined ? 0 : Math.max(0, offsetMs - pausedSinceMs);
  return { pausedSinceMs: undefined, pausedMs: pausedMs + lastMs };
}

/** A packet and a report may be this much later than the key or the pause that they're about. */
const latenessMs = 200;

/**
 * Whether a digit must be hidden, because it was pressed while the recording was paused. With
 * `pauseOnKeys`, that is each key of a recorded call, since a key begins a pause. After a failure,
 * digits stay hidden, because nobody knows when the pause would have ended.
 */
export function hidesKeys(progress: RecordingProgress, pressedAt: Date): boolean {
  const { phase, isHeld, pausedSinceMs, pauseOnKeys, hiddenUntil, failure } = progress;
  if (isHeld === true || pausedSinceMs !== undefined) return true;
  const mayPause = phase === 'running' || failure !== undefined;
  if (mayPause && pauseOnKeys === true) return true;
  return hiddenUntil !== undefined && pressedAt.getTime() < hiddenUntil.getTime() + latenessMs;
}

/** Hides digits. The pauses of the command `dtmf` stay, because they are no digits. */
export function hiddenDigits(digits: string): string {
  return digits.replaceAll(/[^w]/g, '*');
}

/** Returns the terminal event's member. */
export function recordingMembers(progress: RecordingProgress): {
  readonly recording?: RecordingSummary;
} {
  const { key, durationMs, pausedMs, failure, hasStarted } = progress;
  const keyMember = key === undefined ? {} : { key };
  if (failure !== undefined) {
    const times = { durationMs: durationMs ?? 0, pausedMs };
    return { recording: { state: 'failed', ...times, ...keyMember, reason: failure } };
  }
  if (hasStarted !== true) return {};
  // Without its end, the recording belongs to a process that died.
  if (durationMs === undefined) {
    return { recording: { state: 'storing', ...keyMember, incomplete: true } };
  }
  return { recording: { state: 'storing', durationMs, pausedMs, ...keyMember } };
}
