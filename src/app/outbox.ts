// The path of a call's events to their receivers. One statement stores the events and the owed
// notifications. Then the notifier sends the notifications, and the relay publishes the events.

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
  /** Resolves when no leg of the call is on the wire any more. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Called when all events of an ended call are published and its legs are off the wire. */
  readonly onReleased: (callId: CallId) => void;
};

export type OutboxParts = {
  readonly outbox: Outbox;
  readonly relay: EventRelay;
  readonly publisher: RunningPublisher;
  /**
   * Remembers the trace headers of a call's request, which are published with the call's events.
   */
  remember(callId: string, request: Pick<DialoutRequest, 'traceparent' | 'tracestate'>): void;
  /**
   * Begins a call that this process took. `queued` is the state of the call's first event: stored,
   * published, or unknown. If it is unknown, the event is stored again.
   */
  begin(call: AcceptedCall, queued: QueuedEvent): void;
  /** Notes that the machine of a begun call has ended. */
  machineEnded(callId: CallId): void;
  /** Settles a call: all its events are on the stream, and its far end is gone. */
  settle(callId: CallId): void;
  /** Notes that no far end is left in the call. Its events may not be published yet. */
  legsAreOver(callId: CallId): void;
  /**
   * Returns true if steps of the call are on their way into SQL, or its events on their way to
   * NATS.
   */
  holds(callId: CallId): boolean;
  /** Returns true if no step waits to be stored and no event waits to be published. */
  isIdle(): boolean;
};

/**
 * Bounds the stop of the outbox and of the publisher, for which the shutdown has already waited.
 * The next process publishes from SQL the events that were not published in this time.
 */
const stopTimeoutMs = 800;
/**
 * Maximum number of calls with remembered trace headers: about 100 bytes each, or 600 with a full
 * `tracestate`. Events of other calls are published without trace headers.
 */
const maxTraces = 50_000;

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
      // The process that accepted an untaken call may have died before it published `queued`.
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
  const traces = new LRUCache<string, TraceHeaders>({ max: maxTraces });
  const remember: OutboxParts['remember'] = (callId, request) => {
    const trace = traceHeadersOf(request);
    if (trace !== undefined) traces.set(callId, trace);
  };
  return { remember, traceOf: (callId: string) => traces.get(callId) };
}
