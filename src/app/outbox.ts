// From what happens to a call to those who are told of it: stored in one statement, then notified and published from there.

import { LRUCache } from 'lru-cache';
import type { AcceptedCall, DialoutRequest } from '../calls/call-types.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { QueuedEvent } from '../calls/dialout-ports.ts';
import { queuedEvent } from '../calls/life/call-events.ts';
import { createPublisher, type RunningPublisher } from '../events/publisher.ts';
import { EventRelay } from '../events/relay.ts';
import type { ContextStore } from '../interactions/context-store.ts';
import { createContextWriter } from '../interactions/context-writer.ts';
import { type TraceHeaders, traceHeadersOf } from '../lib/trace-context.ts';
import { defaultRetrySchedule } from '../notifier/delivery-rules.ts';
import { owedFor } from '../notifier/owed.ts';
import { dayOf } from '../store/days.ts';
import { appendSteps } from '../store/outbox/call-appends.ts';
import { Outbox } from '../store/outbox/outbox.ts';
import { Settling } from '../store/outbox/settling.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Node } from './nodes.ts';
import type { Notifier } from './notifier.ts';
import type { Storage } from './storage.ts';

export type OutboxNeeds = {
  readonly storage: Storage;
  readonly node: Node;
  readonly events: Events;
  readonly contexts: ContextStore;
  readonly notifier: Notifier;
};

type Parts = OutboxNeeds & {
  /** Nothing of the call is on the wire any more. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Nothing of it is on the wire any more. */
  readonly onReleased: (callId: CallId) => void;
};

export type OutboxParts = {
  readonly outbox: Outbox;
  readonly relay: EventRelay;
  readonly publisher: RunningPublisher;
  /** Of a call that was accepted here: what goes out with its events. */
  remember(callId: string, request: Pick<DialoutRequest, 'traceparent' | 'tracestate'>): void;
  /** A call was taken; its first event is stored, or published, or neither is known. */
  begin(call: AcceptedCall, queued: QueuedEvent): void;
  /** Of a call that was begun: its machine is gone. */
  machineEnded(callId: CallId): void;
  /** All of it is on the stream, and its far end is not in it any more. */
  settle(callId: CallId): void;
  /** No far end is in it any more, whatever else is still to be done. */
  legsAreOver(callId: CallId): void;
  /** Something of the call is on its way into SQL, or from there. */
  holds(callId: CallId): boolean;
  isIdle(): boolean;
};

/**
 * The shutdown has waited for the outbox before. The next process finds in SQL what is not stored or
 * published within this.
 */
const stopTimeoutMs = 800;
/** Calls whose trace is known, at some 100 bytes each, 600 with a full `tracestate`; an event of another one goes out without it. */
const mostTraces = 50_000;

export function openOutbox(
  { config, logger, clock, closers, watcher, tracing }: Environment,
  parts: Parts,
): OutboxParts {
  const { notifier } = parts;
  const { pool } = parts.storage.database;
  const withMachine = new Set<CallId>();
  const settling = new Settling(pool, config.ownerId, (call) => withMachine.has(call), logger);
  closers.add('settling', () => settling.stop());
  const { remember, traceOf } = rememberTraces();
  const publisher = createPublisher(parts.events.connection, logger, {
    untilAllowed: () => parts.node.lease.untilHeld(),
    writeContext: createContextWriter(parts.contexts),
    traceOf,
  });
  closers.add('publisher', () => publisher.stop(stopTimeoutMs));
  const relay = new EventRelay({
    publisher,
    untilReleased: async (callId) => {
      await parts.untilReleased(callId);
      parts.onReleased(callId);
    },
    settle: (callId) => settling.settle(callId),
    markQueuedPublished: (callId) => settling.markQueuedPublished(callId),
    logger,
  });
  const append = {
    pool,
    ownerId: config.ownerId,
    owedFor: (call: AcceptedCall, event: CallEvent) =>
      owedFor(call, event, (receiver) => notifier.canTake(receiver)),
    publishedThrough: (callId: string) => relay.publishedThrough(callId as CallId),
    now: () => clock.now(),
    leaseUntil: (now: Date) => notifier.leaseUntil(now),
    passRefusedAfterMs: defaultRetrySchedule.passRefusedAfterMs,
  };
  const outbox = new Outbox({
    append: (steps) => appendSteps(append, steps),
    onStored: (call, { isQueuedPublished, ...stored }, { isUntaken, isRepeated, isRecovered }) => {
      const { callId } = call;
      remember(callId, call.request);
      for (const event of stored.events) {
        watcher?.onEvent(event);
        tracing?.onEvent(call, event);
      }
      notifier.onStored({ ...stored, callId, day: dayOf(call.acceptedAt), isRepeated });
      // The process that accepted a call that no other has taken may have died before it was published.
      const isMissing = isUntaken && !isQueuedPublished && !relay.knows(callId);
      relay.send([...(isMissing ? [queuedEvent(call)] : []), ...stored.events], { isRecovered });
    },
    logger,
  });
  closers.add('outbox', () => outbox.stop(stopTimeoutMs));
  return {
    ...{ outbox, relay, publisher, remember },
    begin: (call, queued) => {
      withMachine.add(call.callId);
      remember(call.callId, call.request);
      const event = queuedEvent(call);
      if (queued === 'unknown') {
        outbox
          .append(call, { events: [event] }, { isRepeated: true })
          .catch((error: unknown) =>
            logger.error({ err: error, callId: call.callId }, 'an event of a call was not stored'),
          );
      } else if (queued === 'stored' && !relay.knows(call.callId)) relay.send([event]);
    },
    machineEnded: (callId) => {
      withMachine.delete(callId);
    },
    settle: (callId) => settling.settle(callId),
    legsAreOver: (callId) => settling.legsAreOver(callId),
    holds: (callId) => outbox.holds(callId) || relay.holds(callId) || settling.holds(callId),
    isIdle: () => outbox.size() === 0 && publisher.waiting() === 0,
  };
}

function rememberTraces() {
  const traces = new LRUCache<string, TraceHeaders>({ max: mostTraces });
  const remember: OutboxParts['remember'] = (callId, request) => {
    const trace = traceHeadersOf(request);
    if (trace !== undefined) traces.set(callId, trace);
  };
  return { remember, traceOf: (callId: string) => traces.get(callId) };
}
