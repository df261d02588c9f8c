// What the last process left: calls that it was dialling or had up, and ends that it had claimed but not published. Each call
// gets its one terminal fact, and the far end gets its BYE; none is dialled again.

import type { CallEvent } from '../calls/call-events.ts';
import { amdFact, answeredFact, type CallProgress } from '../calls/call-facts.ts';
import { type CallEnd, endAfterAnswer, endOfUnknown } from '../calls/call-outcome.ts';
import type { AcceptedCall, AmdEvent, CallId } from '../calls/call-types.ts';
import type {
  Clock,
  EndToPublish,
  EventPublisher,
  Owners,
  SipPort,
  StoredLeg,
  UnfinishedCall,
} from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { type EndRecorder, publishInOrder } from './end-recorder.ts';

export type RecoveryPorts = {
  readonly ledger: {
    unfinished(owners: Owners, limit: number): Promise<readonly UnfinishedCall[]>;
    endsToPublish(limit: number): Promise<readonly EndToPublish[]>;
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

/** Calls read from SQL and ended at once. */
const batchSize = 50;
/** Far ends that are hung up side by side: one that does not answer takes seconds, and there may be hundreds. */
const farEndsAtOnce = 100;

export type Recovered = {
  readonly ended: number;
  /** Settles when every far end was hung up, or given up; not waited for by the start. */
  readonly farEnds: Promise<void>;
};

/** Ends every call of former processes. Resolves when all of them have their end in SQL. */
export async function recoverCalls(
  ports: RecoveryPorts,
  owners: Extract<Owners, { except: string }>,
): Promise<Recovered> {
  const legs: Orphan[] = [];
  let ended = 0;
  for (;;) {
    const batch = await ports.ledger.unfinished(owners, batchSize);
    await Promise.all(batch.map((unfinished) => endUnfinished(ports, unfinished)));
    for (const { call, leg } of batch)
      if (leg !== undefined) legs.push({ callId: call.callId, leg });
    ended += batch.length;
    if (batch.length < batchSize) return { ended, farEnds: endFarEnds(ports, legs) };
  }
}

/**
 * Ends calls of this very process that have no machine any more: one that failed, or that could not record its end while
 * SQL was away. `isHere`: the call has a machine.
 */
export async function endLostCalls(
  ports: RecoveryPorts,
  ownerId: string,
  isHere: (callId: CallId) => boolean,
): Promise<void> {
  const takenBefore = new Date(ports.clock.now().getTime() - lostAfterMs);
  const found = await ports.ledger.unfinished({ ownerId, takenBefore }, lostBatchSize);
  for (const unfinished of found) {
    if (isHere(unfinished.call.callId)) continue;
    ports.logger.warn({ callId: unfinished.call.callId }, 'ending a call without a machine');
    await endUnfinished(ports, unfinished);
    if (unfinished.leg !== undefined) await ports.sip.endOrphan(unfinished.leg);
  }
}

/** Between the claim and the machine lie milliseconds. */
const lostAfterMs = 60_000;
/** Above what one process has up, so that live calls cannot hide a lost one. */
const lostBatchSize = 10_000;

type Orphan = { readonly callId: CallId; readonly leg: StoredLeg };

async function endFarEnds(ports: RecoveryPorts, orphans: readonly Orphan[]): Promise<void> {
  const queue = [...orphans];
  const worker = async (): Promise<void> => {
    for (let orphan = queue.shift(); orphan !== undefined; orphan = queue.shift()) {
      const { callId, leg } = orphan;
      try {
        ports.logger.info(
          { callId, farEnd: await ports.sip.endOrphan(leg) },
          'far end of an earlier process',
        );
      } catch (error) {
        ports.logger.error({ err: error, callId }, 'far end could not be hung up');
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(farEndsAtOnce, queue.length) }, worker));
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
  const facts = await ports.factsOfCall(unfinished.call);
  const now = ports.clock.now();
  const { progress, missing } = rebuild(unfinished, facts, now);
  await ports.ends.record(progress, endOf(progress, now), missing);
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
