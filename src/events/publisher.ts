// Puts events on the calls stream: in order per call, many calls in parallel, again and again while NATS is unreachable. The message id
// is the event id, so that a publish whose acknowledgement was lost is stored once, for as long as the stream remembers ids.

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { Logger } from '../lib/logger.ts';
import type { TraceHeaders } from '../lib/trace-context.ts';
import { takeTurns } from '../lib/turns.ts';
import { within } from '../lib/within.ts';
import type { EventConnection } from './connection.ts';
import { callSubject, deadLetterSubject } from './subjects.ts';

/** Events that wait, all calls together: some minutes without NATS at full load, about 200 MB. More stay in SQL. */
const defaultMaxWaiting = 100_000;
/** After an outage thousands wait: calls that are up then come before those that are over. */
const mostAtOnce = 256;
const firstRetryMs = 50;
const maxRetryMs = 2_000;
/** `message size exceeds maximum allowed`: the same again would be refused again. */
const tooLargeForStream = 10_054;

export type PublisherOptions = {
  readonly maxWaiting?: number;
  /** Whether events may leave now: undefined, or when. Rejects when they never may again, which fails them. */
  readonly untilAllowed?: () => Promise<void> | undefined;
  /** Done before the event is published: its consumers find the call's context. */
  readonly writeContext?: (event: CallEvent) => Promise<void>;
  /** W3C Trace Context: headers of the call's messages. */
  readonly traceOf?: (callId: string) => TraceHeaders | undefined;
};

export type RunningPublisher = {
  /**
   * Of one call, in order, after those that were given before. Resolves when the stream has them; keeps trying while NATS is
   * away. Rejects when stopped, and when too many wait.
   */
  publish(events: readonly CallEvent[]): Promise<void>;
  /** Events that are not on the stream yet. */
  waiting(): number;
  /** Some of them are of this call. */
  holds(callId: CallId): boolean;
  /** Waits for what was given to `publish`, at most this long; then rejects what is left, and all that comes after. */
  stop(timeoutMs: number): Promise<void>;
};

export function createPublisher(
  connection: EventConnection,
  logger: Logger,
  options: PublisherOptions = {},
): RunningPublisher {
  return new Publisher(connection, logger, options);
}

class Publisher implements RunningPublisher {
  readonly #connection: EventConnection;
  readonly #logger: Logger;
  readonly #options: PublisherOptions;
  /** The last publish of each call that has one under way: what the next one waits for. */
  readonly #tails = new Map<string, Promise<void>>();
  /** Calls whose end waits here. */
  readonly #over = new Set<string>();
  readonly #stopped = new AbortController();
  readonly #turns = takeTurns({ running: mostAtOnce, waiting: Number.POSITIVE_INFINITY }, () => {
    throw new Error('bounded by what waits');
  });
  #waiting = 0;
  #stopping = false;

  constructor(connection: EventConnection, logger: Logger, options: PublisherOptions) {
    this.#connection = connection;
    this.#logger = logger;
    this.#options = options;
    // Every event that waits for its next try listens.
    setMaxListeners(0, this.#stopped.signal);
  }

  waiting(): number {
    return this.#waiting;
  }

  holds(callId: CallId): boolean {
    return this.#tails.has(callId);
  }

  publish(events: readonly CallEvent[]): Promise<void> {
    const [first] = events;
    const last = events.at(-1);
    if (first === undefined || last === undefined) return Promise.resolve();
    if (this.#stopping) return Promise.reject(new Error('the event publisher is stopped'));
    const most = this.#options.maxWaiting ?? defaultMaxWaiting;
    if (this.#waiting + events.length > most) {
      return Promise.reject(new Error(`NATS is unreachable: ${most} events wait for it`));
    }
    this.#waiting += events.length;
    if (isEnd(last)) this.#over.add(last.callId);
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
    // One that failed (only at a stop) fails those behind it too, by the same signal.
    const stored = before === undefined ? publishAll() : before.then(publishAll, publishAll);
    this.#tails.set(first.callId, stored);
    const settle = () => {
      if (this.#tails.get(first.callId) !== stored) return;
      this.#tails.delete(first.callId);
      this.#over.delete(first.callId);
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
    let retryMs = firstRetryMs;
    const { signal } = this.#stopped;
    for (;;) {
      const allowed = this.#options.untilAllowed?.();
      // A stop does not wait for it: the lease, for one, outlives the publisher, and the database may be gone for good.
      if (allowed !== undefined) await within(allowed, signal);
      if (signal.aborted) throw new Error('stopped before the event was published');
      try {
        const isUrgent = !this.#over.has(event.callId);
        await this.#turns(() => this.#publishOnce(event), { isUrgent });
        return;
      } catch (error) {
        if (isRefused(error)) return await this.#deadLetter(event, error);
        this.#logger.warn(
          { err: error, eventId: event.id, retryMs },
          'event not published, trying again',
        );
      }
      await pause(retryMs, undefined, { signal }).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  async #publishOnce(event: CallEvent): Promise<void> {
    await this.#options.writeContext?.(event);
    const subject = callSubject(this.#connection.prefix, event, event.type);
    const trace = this.#options.traceOf?.(event.callId);
    await this.#connection.put(subject, JSON.stringify(event), {
      id: event.id,
      ...(trace === undefined ? {} : { headers: trace }),
    });
  }

  /** It stays on the call's timeline; the events behind it do not wait. */
  async #deadLetter(event: CallEvent, cause: unknown): Promise<void> {
    const { id, type, callId } = event;
    this.#logger.error({ err: cause, eventId: id }, 'NATS refuses an event: it is not published');
    const letter = { reason: 'refused by NATS', eventId: id, type, callId };
    const subject = deadLetterSubject(this.#connection.prefix, 'events');
    await this.#connection
      .put(subject, JSON.stringify(letter), { id: `refused-${id}` })
      .catch((error: unknown) =>
        this.#logger.error({ err: error, eventId: id }, 'dead letter not stored'),
      );
  }
}

/** By its content: larger than the stream, or the server, takes. A subject that cannot be one is refused before, by the API. */
function isRefused(error: unknown): boolean {
  if (error instanceof RangeError) return true;
  if (error instanceof JetStreamApiError) return error.code === tooLargeForStream;
  return error instanceof Error && /max_payload|maximum payload/i.test(error.message);
}
