// What the last process left: calls that it was dialling or had up, and ends that it had claimed but not published. Each call
// gets its one terminal fact, and the far end gets its BYE; none is dialled again.

import type { CallEvent } from '../calls/call-events.ts';
import { amdFact, answeredFact, type CallProgress } from '../calls/call-facts.ts';
import { type CallEnd, endAfterAnswer, endOfUnknown } from '../calls/call-outcome.ts';
import type { AcceptedCall, AmdEvent, CallId } from '../calls/call-types.ts';
import type { Clock, EventPublisher, SipPort, StoredLeg } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { type EndRecorder, publishInOrder } from './end-recorder.ts';

/** A call that somebody claimed and nobody ended. */
export type UnfinishedCall = {
  readonly call: AcceptedCall;
  readonly leg?: StoredLeg;
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  readonly answeredEvent?: CallEvent;
};

export type RecoveryPorts = {
  readonly ledger: {
    unfinished(ownerId: string, limit: number): Promise<readonly UnfinishedCall[]>;
    endsToPublish(
      limit: number,
    ): Promise<readonly { readonly callId: CallId; readonly events: readonly CallEvent[] }[]>;
    markEndPublished(callId: CallId): Promise<void>;
  };
  /** What the stream holds of a call, in order. */
  readonly factsOfCall: (call: AcceptedCall) => Promise<readonly CallEvent[]>;
  readonly sip: SipPort;
  readonly ends: EndRecorder;
  readonly publisher: EventPublisher;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Calls read from SQL at once, and ended side by side: a far end that does not answer takes seconds. */
const batchSize = 50;

/** Ends every call of this node's former processes. Resolves when all of them have their end in SQL. */
export async function recoverCalls(
  ports: RecoveryPorts,
  ownerId: string,
): Promise<{ readonly ended: number }> {
  let ended = 0;
  for (;;) {
    const batch = await ports.ledger.unfinished(ownerId, batchSize);
    await Promise.all(batch.map((unfinished) => endUnfinished(ports, unfinished)));
    ended += batch.length;
    if (batch.length < batchSize) return { ended };
  }
}

/** Ends that SQL holds and the stream may not: published again, and dropped by id where they were there. */
export async function republishEnds(ports: RecoveryPorts): Promise<void> {
  for (;;) {
    const batch = await ports.ledger.endsToPublish(batchSize);
    await Promise.all(
      batch.map(async ({ callId, events }) => {
        await publishInOrder(ports.publisher, events);
        await ports.ledger.markEndPublished(callId);
      }),
    );
    if (batch.length < batchSize) return;
  }
}

async function endUnfinished(ports: RecoveryPorts, unfinished: UnfinishedCall): Promise<void> {
  const { call, leg } = unfinished;
  const logger = ports.logger.child({ callId: call.callId });
  const facts = await ports.factsOfCall(call);
  const { progress, missing } = rebuild(unfinished, facts, ports.clock.now());
  await ports.ends.record(progress, endOf(progress, ports.clock.now()), missing);
  // The caller's knowledge first, then the far end: a carrier that does not answer must not delay the notification.
  const farEnd = leg === undefined ? 'gone' : await ports.sip.endOrphan(leg);
  logger.info(
    { farEnd, answered: progress.answeredAt !== undefined },
    'ended a call of an earlier process',
  );
}

function endOf(progress: CallProgress, at: Date): CallEnd {
  return progress.answeredAt === undefined
    ? endOfUnknown(at)
    : endAfterAnswer({ by: 'gateway', reason: 'Gateway restarted' }, at);
}

/** Takes the sequences up where the stream has them, and states what the dead process owed: `answered`, `amd_stopped`. */
function rebuild(
  unfinished: UnfinishedCall,
  facts: readonly CallEvent[],
  now: Date,
): { readonly progress: CallProgress; readonly missing: readonly CallEvent[] } {
  const { call, ringingAt, answeredAt, answeredEvent } = unfinished;
  const amdEvents: AmdEvent[] = facts.flatMap((fact) =>
    fact.type === 'amd' ? [fact.data.amd] : [],
  );
  const dialing = facts.find((fact) => fact.type === 'dialing');
  let progress: CallProgress = {
    call,
    ...lastSequences(facts),
    ...(dialing === undefined ? {} : { sentAt: new Date(dialing.time) }),
    ...(ringingAt === undefined ? {} : { ringingAt }),
    ...(answeredAt === undefined ? {} : { answeredAt }),
    amdEvents,
  };
  if (answeredAt === undefined) return { progress, missing: [] };

  const missing: CallEvent[] = [];
  if (!facts.some((fact) => fact.type === 'answered')) {
    const stated = answeredFact({ ...progress, answeredAt });
    // The stored fact has the durations as they were measured; its id and place are those that the dead process gave it.
    missing.push(answeredEvent ?? stated.event);
    progress = { ...progress, ...lastSequences([...facts, ...missing]) };
  }
  if (owesAmdStopped(progress)) {
    const amd: AmdEvent = {
      event: 'amd_stopped',
      reason: 'gateway-restarted',
      elapsedMs: Math.max(0, now.getTime() - answeredAt.getTime()),
    };
    progress = { ...progress, amdEvents: [...amdEvents, amd] };
    const { event, ...sequences } = amdFact({ ...progress, answeredAt }, now, amd);
    missing.push(event);
    progress = { ...progress, ...sequences };
  }
  return { progress, missing };
}

function owesAmdStopped(progress: CallProgress): boolean {
  return (
    progress.call.request.machineDetection !== 'disabled' &&
    !progress.amdEvents.some((amd) => amd.event === 'amd_stopped')
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
