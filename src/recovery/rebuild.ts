// Rebuilds the progress of a call whose process was lost from its stored events, and finds the
// events that the database lacks. All functions here are pure.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { amdStoppedEvent } from '../calls/detection/detection-events.ts';
import type { CallProgress } from '../calls/life/call-events.ts';
import type { GatewayLoss } from '../calls/life/call-outcome.ts';
import { afterPlayback, nothingPlayed } from '../calls/playback/playback.ts';
import type { UnfinishedCall } from '../calls/ports.ts';
import { afterRecording, nothingRecorded } from '../calls/recording/recording-progress.ts';
import { type CallEvidence, evidenceAfter } from '../calls/rules/evidence.ts';
import type { TransferSummary } from '../calls/transfer/transfer-contract.ts';

export type Rebuilt = {
  readonly progress: CallProgress;
  /**
   * Events that the database doesn't contain, in order, including `amd_stopped` if the lost process
   * still had to send it. The terminal event follows them.
   */
  readonly missing: readonly CallEvent[];
};

/**
 * Rebuilds a call's progress and continues its sequence numbers.
 * @param onStream the call's events on the stream, in order. If the database has been restored from
 * a backup, the stream contains events that it lacks
 */
export function rebuild(
  unfinished: UnfinishedCall,
  onStream: readonly CallEvent[],
  { now, loss }: { readonly now: Date; readonly loss: GatewayLoss },
): Rebuilt {
  const known = knownEvents(unfinished, onStream);
  const stored = new Set(unfinished.events.map(({ id }) => id));
  const missing = known.filter(({ id }) => !stored.has(id));
  const progress = progressOf(unfinished, known);
  const { answeredAt } = progress;
  if (answeredAt === undefined || !owesAmdStopped(progress)) return { progress, missing };

  const reason = `gateway-${loss}` as const;
  const stop = { reason, round: lastRound(progress.amdEvents) };
  const stopped = amdStoppedEvent({ ...progress, answeredAt }, now, stop);
  return { progress: { ...progress, ...stopped.progress }, missing: [...missing, stopped.event] };
}

/**
 * Merges the events from the database and the stream. If both contain an event with the same
 * sequence number, the database wins.
 */
function knownEvents(
  { events }: UnfinishedCall,
  onStream: readonly CallEvent[],
): readonly CallEvent[] {
  const byNumber = new Map<number, CallEvent>();
  for (const event of [...events, ...onStream]) {
    if (!byNumber.has(event.eventSequence)) byNumber.set(event.eventSequence, event);
  }
  return [...byNumber.values()].sort((a, b) => a.eventSequence - b.eventSequence);
}

function progressOf(
  { call, ringingAt, answeredAt }: UnfinishedCall,
  events: readonly CallEvent[],
): CallProgress {
  const sentAt = timeOf(events, 'dialing');
  const firstRingAt = ringingAt ?? timeOf(events, 'ringing');
  return {
    call,
    ...lastSequences(events),
    ...(sentAt === undefined ? {} : { sentAt }),
    ...(firstRingAt === undefined ? {} : { ringingAt: firstRingAt }),
    ...(answeredAt === undefined ? {} : { answeredAt }),
    connectedIdentity: events.find((event) => event.type === 'answered')?.data.connectedIdentity,
    amdEvents: events.flatMap((event) => (event.type === 'amd' ? [event.data.amd] : [])),
    failedAttempts: failedAttemptsIn(events),
    transfer: transferIn(events),
    playback: events.reduce(afterPlayback, nothingPlayed),
    recording: events.reduce(afterRecording, nothingRecorded),
    evidence: events.reduce<CallEvidence>((before, event) => evidenceAfter(before, event), {}),
  };
}

/** Returns the failed attempts. Each `dialing` event lists all attempts that failed before it. */
function failedAttemptsIn(events: readonly CallEvent[]): CallProgress['failedAttempts'] {
  const last = events.findLast((event) => event.type === 'dialing');
  return last?.data.failedAttempts ?? [];
}

/**
 * Returns the last transfer's summary. If the transfer was still under way, it ended when the
 * process was lost.
 */
function transferIn(events: readonly CallEvent[]): TransferSummary | undefined {
  const last = events.findLast(({ type }) => type.startsWith('transfer-'));
  if (last?.type === 'transfer-completed') return unnumbered(last.data);
  if (last?.type === 'transfer-failed') {
    const { reason: _reason, ...summary } = unnumbered(last.data);
    return summary;
  }
  const outcome = 'gateway-failure';
  if (last?.type === 'transfer-answered') {
    return { ...unnumbered(last.data), outcome, answeredAt: last.time };
  }
  if (last?.type !== 'transfer-ringing') return undefined;
  const { to, mode } = last.data;
  return { to, mode, outcome };
}

/**
 * Removes the notification sequence, because the terminal event mustn't repeat an earlier event's
 * number.
 */
function unnumbered<Data extends { readonly notificationSequence?: number }>({
  notificationSequence: _sequence,
  ...data
}: Data): Omit<Data, 'notificationSequence'> {
  return data;
}

function timeOf(events: readonly CallEvent[], type: CallEvent['type']): Date | undefined {
  const event = events.find((candidate) => candidate.type === type);
  return event === undefined ? undefined : new Date(event.time);
}

function owesAmdStopped({ call, amdEvents }: CallProgress): boolean {
  const round = lastRound(amdEvents);
  return (
    call.request.machineDetection !== 'disabled' &&
    !amdEvents.some((amd) => amd.event === 'amd_stopped' && (amd.round ?? 1) === round)
  );
}

function lastRound(amdEvents: CallProgress['amdEvents']): number {
  return Math.max(1, ...amdEvents.map(({ round = 1 }) => round));
}

function lastSequences(events: readonly CallEvent[]) {
  const notified = events.map(({ data }) => data.notificationSequence ?? 0);
  return {
    eventSequence: Math.max(1, ...events.map((event) => event.eventSequence)),
    notificationSequence: Math.max(0, ...notified),
  };
}
