// What the last process left: calls that it was dialling or had up, and ends that it had claimed but not published. Each call
// gets its one terminal fact, and the far end gets its BYE; none is dialled again.

import type { CallEvent } from '../calls/call-events.ts';
import type { CallProgress } from '../calls/call-facts.ts';
import { publishInOrder } from '../calls/call-journal.ts';
import { type CallEnd, endAfterAnswer, endOfUnknown } from '../calls/call-outcome.ts';
import type { AcceptedCall, CallId } from '../calls/call-types.ts';
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
import type { EndRecorder } from './end-recorder.ts';
import { rebuild } from './rebuild.ts';

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

/** Ended, or published again, at once. */
const batchSize = 50;
/** Above what one process has up, so that live calls cannot hide a lost one. */
const unfinishedLimit = 10_000;
/** Far ends that are hung up side by side: one that does not answer takes seconds, and there may be hundreds. */
const farEndsAtOnce = 100;

export type Recovered = {
  readonly ended: number;
  /** Could not be ended now; worth another try. */
  readonly failed: number;
  /** Settles when every far end was hung up, or given up; not waited for by the start. */
  readonly farEnds: Promise<void>;
};

/**
 * Ends every call of processes that are lost. Resolves when all of them have their end in SQL; one that cannot be ended is
 * logged and counted.
 */
export async function recoverCalls(
  ports: RecoveryPorts,
  owners: Extract<Owners, { except: string }>,
): Promise<Recovered> {
  const found = await ports.ledger.unfinished(owners, unfinishedLimit);
  const ended: UnfinishedCall[] = [];
  for (let start = 0; start < found.length; start += batchSize) {
    const batch = found.slice(start, start + batchSize);
    const results = await Promise.all(batch.map((unfinished) => tryToEnd(ports, unfinished)));
    ended.push(...batch.filter((_, index) => results[index]));
  }
  const failed = found.length - ended.length;
  return { ended: ended.length, failed, farEnds: endFarEnds(ports, ended) };
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
  const found = await ports.ledger.unfinished({ ownerId, takenBefore }, unfinishedLimit);
  const ended: UnfinishedCall[] = [];
  for (const unfinished of found) {
    if (isHere(unfinished.call.callId)) continue;
    ports.logger.warn({ callId: unfinished.call.callId }, 'ending a call without a machine');
    if (await tryToEnd(ports, unfinished)) ended.push(unfinished);
  }
  await endFarEnds(ports, ended);
}

/** Between the claim and the machine lie milliseconds. */
const lostAfterMs = 60_000;

type Orphan = { readonly callId: CallId; readonly leg: StoredLeg };

async function endFarEnds(ports: RecoveryPorts, ended: readonly UnfinishedCall[]): Promise<void> {
  const queue: Orphan[] = ended.flatMap(({ call, leg }) =>
    leg === undefined ? [] : [{ callId: call.callId, leg }],
  );
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

/**
 * Ends that SQL holds and the stream may not: published again, and dropped by id where they were there. While NATS is
 * away this waits for it, until `stopped`: then they are left to the next process.
 */
export async function republishEnds(ports: RecoveryPorts, stopped?: AbortSignal): Promise<void> {
  for (;;) {
    const batch = await ports.ledger.endsToPublish(batchSize);
    const published = Promise.all(
      batch.map(async ({ callId, events }) => {
        await publishInOrder(ports.publisher, events);
        await ports.ledger.markEndPublished(callId);
      }),
    );
    await untilAborted(published, stopped);
    if (batch.length < batchSize || stopped?.aborted === true) return;
  }
}

/** Waits for the work, or for the signal if that comes first; the work itself goes on. */
async function untilAborted(work: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  if (signal === undefined) return void (await work);
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<void>((resolve) => {
    onAbort = resolve;
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) resolve();
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

/** False: it could not be ended now. */
async function tryToEnd(ports: RecoveryPorts, unfinished: UnfinishedCall): Promise<boolean> {
  try {
    await endUnfinished(ports, unfinished);
    return true;
  } catch (error) {
    const { callId } = unfinished.call;
    ports.logger.error({ err: error, callId }, 'a call without a process could not be ended');
    return false;
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
