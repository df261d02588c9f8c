// Connects the parts that store, publish and send a call's events. The outbox stores the events
// together with the notifications that have to be sent for them. Once both have been stored, the
// notifier sends the notifications to their receivers, and the relay publishes the events to the
// stream in NATS.

import { LRUCache } from 'lru-cache';
import type { AcceptedCall, DialoutRequest } from '../calls/call-types.ts';
import type { EventOf } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { QueuedEvent } from '../calls/dialout-ports.ts';
import { queuedEvent } from '../calls/life/call-events.ts';
import { createPublisher, type RunningPublisher } from '../events/publisher.ts';
import { EventRelay } from '../events/relay.ts';
import { readContextFacts } from '../interactions/context-facts.ts';
import type { ContextStore } from '../interactions/context-store.ts';
import { ContextWriter } from '../interactions/context-writer.ts';
import { upTo } from '../lib/growing-cache.ts';
import { type TraceHeaders, traceHeadersOf } from '../lib/trace-context.ts';
import { defaultRetrySchedule } from '../notifier/delivery-rules.ts';
import { owedFor } from '../notifier/owed.ts';
import { dayOf } from '../store/days.ts';
import { type AppendedStep, type AppendPorts, appendSteps } from '../store/outbox/call-appends.ts';
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
  /** Resolves once all of the call's legs have ended, so no SIP transaction or dialog is left. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Called once an ended call's events have all been published and its legs have ended. */
  readonly onReleased: (callId: CallId) => void;
  /** Called once the suppression of a person who opted out has been stored. */
  readonly onOptedOut: (call: AcceptedCall) => void;
  /** Called once a failure of a recording has been stored. */
  readonly onRecordingFailed: (event: EventOf<'recording-failed'>) => void;
};

type StoredStep = Omit<Extract<AppendedStep, { readonly kind: 'stored' }>, 'isQueuedPublished'>;

export type OutboxParts = {
  readonly outbox: Outbox;
  readonly relay: EventRelay;
  readonly publisher: RunningPublisher;
  /** Remembers the request's trace headers, which we publish with the call's events. */
  remember(callId: string, request: Pick<DialoutRequest, 'traceparent' | 'tracestate'>): void;
  /**
   * Starts tracking a call that this process has claimed. `queued` says whether the call's first
   * event has been stored or published. If that's unknown, we store the event again.
   */
  begin(call: AcceptedCall, queued: QueuedEvent): void;
  /** Notes that the call's state machine has finished. Only for calls passed to `begin`. */
  machineEnded(callId: CallId): void;
  /**
   * Marks a call as settled. All its events must have been published, and its legs must have ended.
   */
  settle(callId: CallId): void;
  /**
   * Notes that all of the call's legs have ended, even if some events haven't been published yet.
   */
  noteLegsGone(callId: CallId): void;
  /**
   * Returns true while any of the call's steps are still being stored, or any of its events
   * published.
   */
  holds(callId: CallId): boolean;
  /** Returns true if there are no steps left to store and no events left to publish. */
  isIdle(): boolean;
};

/**
 * How long we wait for the outbox and for the publisher to stop. By then, `settle` in calls.ts has
 * already given them time to finish, and the next process will publish any remaining events from
 * the database.
 */
const stopTimeoutMs = 800;
/**
 * We remember the trace headers of at most this many calls, which takes about 100 bytes per call,
 * or 600 with a full `tracestate`. Events for any further calls are published without trace
 * headers.
 */
const maxTraces = 50_000;

export function openOutbox(
  { config, logger, clock, closers, watcher, tracing }: Environment,
  parts: Parts,
): OutboxParts {
  const { pool } = parts.storage.database;
  const withMachine = new Set<CallId>();
  const settling = new Settling(pool, config.ownerId, (call) => withMachine.has(call), logger);
  closers.add('settling', () => settling.stop());
  const { remember, traceOf } = rememberTraces();
  const contexts = new ContextWriter({
    contexts: parts.contexts,
    readFacts: (callId) => readContextFacts(pool, callId),
  });
  const publisher = openPublisher({ logger, closers }, parts, contexts, traceOf);
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
  const append = appendPorts({ config, clock }, parts, relay);
  const inform = informing({ watcher, tracing }, parts, contexts);
  const outbox = new Outbox({
    append: (steps) => appendSteps(append, steps),
    onStored: (call, { isQueuedPublished, ...stored }, { isUntaken, isRepeated, isRecovered }) => {
      const { callId } = call;
      remember(callId, call.request);
      // The process that accepted the call may have died before publishing `queued`.
      const isMissing = isUntaken && !isQueuedPublished && !relay.knows(callId);
      const events = [...(isMissing ? [queuedEvent(call)] : []), ...stored.events];
      try {
        inform(call, stored, isRepeated);
      } finally {
        // Otherwise the call's next events would be on the stream, and these would not.
        relay.send(events, { isRecovered });
      }
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
    noteLegsGone: (callId) => settling.noteLegsGone(callId),
    holds: (callId) => outbox.holds(callId) || relay.holds(callId) || settling.holds(callId),
    isIdle: () => outbox.size() === 0 && publisher.waiting() === 0,
  };
}

/** Returns a function that tells every other part of the gateway what has been stored. */
function informing(
  { watcher, tracing }: Pick<Environment, 'watcher' | 'tracing'>,
  { notifier, onOptedOut, onRecordingFailed }: Parts,
  contexts: ContextWriter,
) {
  return (call: AcceptedCall, stored: StoredStep, isRepeated: boolean): void => {
    for (const event of stored.events) {
      watcher?.onEvent(event);
      contexts.note(call, event);
      if (event.type === 'opted-out') onOptedOut(call);
      if (event.type === 'recording-failed' && !isRepeated) onRecordingFailed(event);
      tracing?.onEvent(call, event);
    }
    const { callId, acceptedAt } = call;
    notifier.onStored({ ...stored, callId, day: dayOf(acceptedAt), isRepeated });
  };
}

function appendPorts(
  { config, clock }: Pick<Environment, 'config' | 'clock'>,
  { storage, notifier }: Parts,
  relay: EventRelay,
): AppendPorts {
  return {
    pool: storage.database.pool,
    ownerId: config.ownerId,
    owedFor: (call, event) => owedFor(call, event, (receiver) => notifier.canTake(receiver)),
    publishedThrough: (callId) => relay.publishedThrough(callId as CallId),
    now: () => clock.now(),
    leaseUntil: (now) => notifier.leaseUntil(now),
    passRefusedAfterMs: defaultRetrySchedule.passRefusedAfterMs,
  };
}

function openPublisher(
  { logger, closers }: Pick<Environment, 'logger' | 'closers'>,
  { events, node }: Parts,
  contexts: ContextWriter,
  traceOf: (callId: string) => TraceHeaders | undefined,
): RunningPublisher {
  const publisher = createPublisher(events.connection, logger, {
    untilAllowed: () => node.lease.untilHeld(),
    writeContext: (event) => contexts.write(event),
    traceOf,
  });
  events.report(publisher);
  closers.add('publisher', () => publisher.stop(stopTimeoutMs));
  return publisher;
}

function rememberTraces() {
  const traces = new LRUCache<string, TraceHeaders>(upTo(maxTraces));
  const remember: OutboxParts['remember'] = (callId, request) => {
    const trace = traceHeadersOf(request);
    if (trace !== undefined) traces.set(callId, trace);
  };
  return { remember, traceOf: (callId: string) => traces.get(callId) };
}
