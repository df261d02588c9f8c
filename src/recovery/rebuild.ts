// What a dead process knew of a call, put together from SQL and the stream; and the facts that it owed. Pure.

import { amdFact, type CallProgress, queuedFact } from '../calls/call-facts.ts';
import type { GatewayLoss } from '../calls/call-outcome.ts';
import { closingAmdEvents } from '../calls/closing-amd-events.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import type { UnfinishedCall } from '../calls/ports.ts';

export type Rebuilt = {
  readonly progress: CallProgress;
  /** Before the end, in order: those that the stream misses, and `amd_stopped`. */
  readonly missing: readonly CallEvent[];
};

/** Takes the sequences up where they were left off. `onStream`: of this call, in order. */
export function rebuild(
  unfinished: UnfinishedCall,
  onStream: readonly CallEvent[],
  { now, loss }: { readonly now: Date; readonly loss: GatewayLoss },
): Rebuilt {
  const missing = missingFacts(unfinished, onStream);
  const progress = progressOf(unfinished, [...onStream, ...missing]);
  const { answeredAt } = progress;
  if (answeredAt === undefined || !owesAmdStopped(progress)) return { progress, missing };

  const [, amd] = closingAmdEvents(`gateway-${loss}`, now.getTime() - answeredAt.getTime());
  const stopped = { ...progress, answeredAt, amdEvents: [...progress.amdEvents, amd] };
  const { event, ...sequences } = amdFact(stopped, now, amd);
  return { progress: { ...stopped, ...sequences }, missing: [...missing, event] };
}

/**
 * Facts that the dead process had stated and the stream did not get. With the answer SQL got what the stream had not
 * confirmed by then. What was stated later is gone where the stream does not have it, and leaves no gap: the publisher
 * keeps the order of a call, so that only the last ones can be missing.
 */
function missingFacts(
  { call, answeredEvent, unpublished = [] }: UnfinishedCall,
  onStream: readonly CallEvent[],
): readonly CallEvent[] {
  const stored = new Set(onStream.map((fact) => fact.id));
  const stated = [
    queuedFact(call),
    ...unpublished,
    ...(answeredEvent === undefined ? [] : [answeredEvent]),
  ];
  return stated.filter((fact) => !stored.has(fact.id));
}

function progressOf(
  { call, ringingAt, answeredAt }: UnfinishedCall,
  facts: readonly CallEvent[],
): CallProgress {
  const sentAt = timeOf(facts, 'dialing');
  // SQL is told of the ring without waiting for it.
  const firstRingAt = ringingAt ?? timeOf(facts, 'ringing');
  return {
    call,
    ...lastSequences(facts),
    ...(sentAt === undefined ? {} : { sentAt }),
    ...(firstRingAt === undefined ? {} : { ringingAt: firstRingAt }),
    ...(answeredAt === undefined ? {} : { answeredAt }),
    amdEvents: facts.flatMap((fact) => (fact.type === 'amd' ? [fact.data.amd] : [])),
    failedAttempts: failedAttemptsIn(facts),
  };
}

/** Each `dialing` has all that failed before it. One that was stated by an older version has none. */
function failedAttemptsIn(facts: readonly CallEvent[]): CallProgress['failedAttempts'] {
  const last = facts.findLast((fact) => fact.type === 'dialing');
  return last?.data.failedAttempts ?? [];
}

function timeOf(facts: readonly CallEvent[], type: CallEvent['type']): Date | undefined {
  const fact = facts.find((candidate) => candidate.type === type);
  return fact === undefined ? undefined : new Date(fact.time);
}

function owesAmdStopped({ call, amdEvents }: CallProgress): boolean {
  return (
    call.request.machineDetection !== 'disabled' &&
    !amdEvents.some((amd) => amd.event === 'amd_stopped')
  );
}

function lastSequences(facts: readonly CallEvent[]) {
  const notified = facts.map((fact) =>
    'notificationSequence' in fact.data ? (fact.data.notificationSequence ?? 0) : 0,
  );
  return {
    eventSequence: Math.max(1, ...facts.map((fact) => fact.eventSequence)),
    notificationSequence: Math.max(0, ...notified),
  };
}
