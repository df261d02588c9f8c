// Publishes events on the calls stream. Each call's events are published in order, but many calls'
// events are published in parallel. While NATS is unreachable, we keep retrying. The message id is
// the event id, so a retry within the stream's duplicate window can't store an event twice.

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import { publishedEvent } from '../calls/contract/published-event.ts';
import type { Logger } from '../lib/logger.ts';
import type { TraceHeaders } from '../lib/trace-context.ts';
import { takeTurns } from '../lib/turns.ts';
import { within } from '../lib/within.ts';
import type { EventConnection } from './connection.ts';
import type { Backlog } from './nats-status.ts';
import { callSubject, deadLetterSubject } from './subjects.ts';

/**
 * How many events may be waiting across all calls. This many accumulate in a few minutes of outage
 * at full load and take about 200 MB. Any further events are left in the database.
 */
const defaultMaxWaiting = 100_000;
/**
 * Limits concurrent publications. After an outage, thousands of events are waiting, and events from
 * live calls go first.
 */
const maxConcurrent = 256;
const firstRetryMs = 50;
const maxRetryMs = 2_000;
/** Error code for `message size exceeds maximum allowed`, after which a retry is pointless. */
const tooLargeForStream = 10_054;

export type PublisherOptions = {
  readonly maxWaiting?: number;
  /**
   * Returns undefined if events may be published now, else a promise that resolves as soon as
   * publishing is allowed. If the promise rejects, publishing fails for good.
   */
  readonly untilAllowed?: () => Promise<void> | undefined;
  /**
   * Writes the call's context before the event is published, so that the event's consumers can find
   * the context.
   */
  readonly writeContext?: (event: CallEvent) => Promise<void>;
  /** Returns the W3C Trace Context headers for the call's messages. */
  readonly traceOf?: (callId: string) => TraceHeaders | undefined;
};

export type RunningPublisher = {
  /**
   * Publishes one call's events in order, after any events that were passed before.
   * Keeps retrying while NATS is unreachable. Resolves once the events are on the stream. Rejects
   * after a stop, or if too many events are waiting.
   */
  publish(events: readonly CallEvent[]): Promise<void>;
  /** Returns the number of events that haven't been published yet. */
  waiting(): number;
  /** Describes these events, and the failure that has been holding one of them up the longest. */
  backlog(): Backlog;
  /** Returns true if any of the call's events still have to be published. */
  holds(callId: CallId): boolean;
  /**
   * Waits at most `timeoutMs` for events to be published, then rejects the rest. After this,
   * `publish` rejects immediately.
   */
  stop(timeoutMs: number): Promise<void>;
};

export function createPublisher(
  connection: EventConnection,
  logger: Logger,
  options: PublisherOptions = {},
): RunningPublisher {
  return new Publisher(connection, logger, options);
}

type Failing = { readonly failingSince: Date; readonly failure: string };

class Publisher implements RunningPublisher {
  readonly #connection: EventConnection;
  readonly #logger: Logger;
  readonly #options: PublisherOptions;
  /** Each call's last pending publication, which the call's next publication waits for. */
  readonly #tails = new Map<string, Promise<void>>();
  /** Calls that have ended, but whose end event still has to be published. */
  readonly #ended = new Set<string>();
  readonly #stopped = new AbortController();
  readonly #turns = takeTurns({ running: maxConcurrent, waiting: Number.POSITIVE_INFINITY }, () => {
    throw new Error('the number of waiting turns is not limited here');
  });
  /** When each publication was passed to us, in ms, oldest first. */
  readonly #waitingSince = new Set<{ readonly sinceMs: number }>();
  /** Events that failed and will be retried, by id. The event that failed first comes first. */
  readonly #failing = new Map<string, Failing>();
  #waiting = 0;
  #stopping = false;

  constructor(connection: EventConnection, logger: Logger, options: PublisherOptions) {
    this.#connection = connection;
    this.#logger = logger;
    this.#options = options;
    // Each waiting event adds a listener, so we don't want Node to warn about a leak.
    setMaxListeners(0, this.#stopped.signal);
  }

  waiting(): number {
    return this.#waiting;
  }

  backlog(): Backlog {
    const [oldest] = this.#waitingSince;
    const [failing] = this.#failing.values();
    return {
      waitingEvents: this.#waiting,
      oldestWaitingMs: oldest === undefined ? 0 : performance.now() - oldest.sinceMs,
      ...failing,
    };
  }

  holds(callId: CallId): boolean {
    return this.#tails.has(callId);
  }

  publish(events: readonly CallEvent[]): Promise<void> {
    const [first] = events;
    const last = events.at(-1);
    if (first === undefined || last === undefined) return Promise.resolve();
    if (this.#stopping) return Promise.reject(new Error('the event publisher is stopped'));
    const maxWaiting = this.#options.maxWaiting ?? defaultMaxWaiting;
    if (this.#waiting + events.length > maxWaiting) {
      return Promise.reject(new Error(`NATS is unreachable: ${maxWaiting} events wait for it`));
    }
    this.#waiting += events.length;
    const waiting = { sinceMs: performance.now() };
    this.#waitingSince.add(waiting);
    if (isEnd(last)) this.#ended.add(last.callId);
    const publishAll = async (): Promise<void> => {
      for (const event of events) {
        try {
          await this.#store(event);
        } finally {
          this.#waiting -= 1;
        }
      }
    };
    const before = this.#tails.get(first.callId);
    // A publication fails only after a stop, and the same signal also makes the next publications
    // fail.
    const stored = before === undefined ? publishAll() : before.then(publishAll, publishAll);
    this.#tails.set(first.callId, stored);
    const settle = () => {
      this.#waitingSince.delete(waiting);
      if (this.#tails.get(first.callId) !== stored) return;
      this.#tails.delete(first.callId);
      this.#ended.delete(first.callId);
    };
    stored.then(settle, settle);
    return stored;
  }

  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true;
    const timer = setTimeout(() => this.#stopped.abort(), timeoutMs);
    await Promise.allSettled(this.#tails.values());
    clearTimeout(timer);
    this.#stopped.abort();
  }

  async #store(event: CallEvent): Promise<void> {
    try {
      await this.#tryUntilStored(event);
    } finally {
      this.#failing.delete(event.id);
    }
  }

  async #tryUntilStored(event: CallEvent): Promise<void> {
    let retryMs = firstRetryMs;
    const { signal } = this.#stopped;
    for (;;) {
      const allowed = this.#options.untilAllowed?.();
      // A stop can't wait for permission, because the database may never come back.
      if (allowed !== undefined) await within(allowed, signal);
      if (signal.aborted) throw new Error('stopped before the event was published');
      try {
        const isUrgent = !this.#ended.has(event.callId);
        await this.#turns(() => this.#publishOnce(event), { isUrgent });
        return;
      } catch (error) {
        if (isRefused(error)) {
          return await putDeadLetter(this.#connection, this.#logger, event, error);
        }
        this.#onFailure(event, error);
      }
      await pause(retryMs, undefined, { signal }).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  /** Logs each event's first failure only, because an outage makes thousands of events fail. */
  #onFailure({ id }: CallEvent, error: unknown): void {
    if (this.#failing.has(id)) return;
    const failure = error instanceof Error ? error.message : String(error);
    this.#failing.set(id, { failingSince: new Date(), failure });
    this.#logger.warn({ err: error, eventId: id }, 'cannot publish an event, will retry');
  }

  async #publishOnce(event: CallEvent): Promise<void> {
    await this.#options.writeContext?.(event);
    const subject = callSubject(this.#connection.prefix, event, event.type);
    const trace = this.#options.traceOf?.(event.callId);
    await this.#connection.put(subject, JSON.stringify(publishedEvent(event)), {
      id: event.id,
      ...(trace === undefined ? {} : { headers: trace }),
    });
  }
}

/**
 * Publishes an event that follows its call's end. If NATS refuses the event, a dead letter takes
 * its place. Rejects if a retry may succeed.
 */
export async function publishLateEvent(
  connection: EventConnection,
  logger: Logger,
  event: CallEvent,
): Promise<void> {
  const subject = callSubject(connection.prefix, event, event.type);
  try {
    await connection.put(subject, JSON.stringify(publishedEvent(event)), { id: event.id });
  } catch (error) {
    if (!isRefused(error)) throw error;
    await putDeadLetter(connection, logger, event, error);
  }
}

/**
 * Publishes a dead letter instead of an event that NATS refuses, so that later events aren't
 * blocked. The event remains on the call's timeline.
 */
async function putDeadLetter(
  connection: EventConnection,
  logger: Logger,
  { id, type, callId }: CallEvent,
  cause: unknown,
): Promise<void> {
  logger.error({ err: cause, eventId: id }, 'NATS rejects an event, so it is not published');
  const letter = { reason: 'refused by NATS', eventId: id, type, callId };
  const subject = deadLetterSubject(connection.prefix, 'events');
  await connection
    .put(subject, JSON.stringify(letter), { id: `refused-${id}` })
    .catch((error: unknown) =>
      logger.error({ err: error, eventId: id }, 'cannot store a dead letter'),
    );
}

/**
 * Returns true if NATS will never accept the event, either because it is too large for the stream
 * or the server, or because its subject is invalid. Normally, the API has already rejected invalid
 * subjects.
 */
export function isRefused(error: unknown): boolean {
  if (error instanceof RangeError) return true;
  if (error instanceof JetStreamApiError) return error.code === tooLargeForStream;
  return error instanceof Error && /max_payload|maximum payload/i.test(error.message);
}
