// Puts facts on the calls stream: in order per call, many calls in parallel, again and again while NATS is away. The
// message id is the event id, so that a publish whose acknowledgement was lost is stored once.

import { setMaxListeners } from 'node:events';
import type { CallEvent } from '../calls/contract/call-event.ts';
import type { EventPublisher } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { untilAborted } from '../lib/until-aborted.ts';
import type { EventConnection } from './connection.ts';
import { callSubject } from './subjects.ts';

/** Facts that wait, all calls together: some minutes without NATS at full load. Bounds memory to about 200 MB. */
const defaultMaxWaiting = 100_000;
const acknowledgeTimeoutMs = 5_000;
const firstRetryMs = 50;
const maxRetryMs = 2_000;

export type PublisherOptions = {
  readonly maxWaiting?: number;
  /** Whether facts may leave now: undefined, or when. Rejects when they never may again, which fails them. */
  readonly untilAllowed?: () => Promise<void> | undefined;
  /** Told of each before it is stored. */
  readonly onFact?: (fact: CallEvent) => void;
};

export type RunningPublisher = EventPublisher & {
  /** Facts that are not stored yet. */
  waiting(): number;
  /** Some of them are of this call. */
  holds(callId: string): boolean;
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
  readonly #maxWaiting: number;
  readonly #untilAllowed: () => Promise<void> | undefined;
  readonly #onFact: ((fact: CallEvent) => void) | undefined;
  /** The last publish of each call that has one under way: what the next one waits for. */
  readonly #tails = new Map<string, Promise<void>>();
  readonly #stopped = new AbortController();
  #waiting = 0;
  #stopping = false;

  constructor(connection: EventConnection, logger: Logger, options: PublisherOptions) {
    this.#connection = connection;
    this.#logger = logger;
    this.#maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
    this.#untilAllowed = options.untilAllowed ?? (() => undefined);
    this.#onFact = options.onFact;
    // Every fact that waits for its next try listens.
    setMaxListeners(0, this.#stopped.signal);
  }

  waiting(): number {
    return this.#waiting;
  }

  holds(callId: string): boolean {
    return this.#tails.has(callId);
  }

  publish(event: CallEvent): Promise<void> {
    if (this.#stopping) return Promise.reject(new Error('the event publisher is stopped'));
    if (this.#waiting >= this.#maxWaiting) {
      return Promise.reject(
        new Error(`NATS has been away for too long: ${this.#maxWaiting} events wait for it`),
      );
    }
    let subject: string;
    try {
      subject = callSubject(this.#connection.prefix, event, event.type);
    } catch (error) {
      return Promise.reject(error);
    }
    // Written down now: the caller's object may change while it waits.
    const payload = JSON.stringify(event);
    this.#waiting += 1;
    this.#onFact?.(event);
    const before = this.#tails.get(event.callId);
    const stored =
      before === undefined
        ? this.#store(subject, payload, event.id)
        : // One that failed (only at a stop) fails those behind it too, by the same signal.
          before.then(
            () => this.#store(subject, payload, event.id),
            () => this.#store(subject, payload, event.id),
          );
    this.#tails.set(event.callId, stored);
    const settle = () => {
      this.#waiting -= 1;
      if (this.#tails.get(event.callId) === stored) this.#tails.delete(event.callId);
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

  async #store(subject: string, payload: string, id: string): Promise<void> {
    let retryMs = firstRetryMs;
    for (;;) {
      const allowed = this.#untilAllowed();
      // A stop does not wait for it: the lease, for one, outlives the publisher, and the database may be gone for good.
      if (allowed !== undefined) await untilAborted(allowed, this.#stopped.signal);
      if (this.#stopped.signal.aborted) throw new Error('stopped before the event was stored');
      try {
        await this.#publishOnce(subject, payload, id);
        return;
      } catch (error) {
        this.#logger.warn({ err: error, eventId: id, retryMs }, 'event not stored, trying again');
      }
      await abortableDelay(retryMs, this.#stopped.signal);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  /** Gives up at once when the connection was replaced: the acknowledgement went with the old one. */
  async #publishOnce(subject: string, payload: string, id: string): Promise<void> {
    let removeListener: (() => void) | undefined;
    const replaced = new Promise<never>((_, reject) => {
      removeListener = this.#connection.onReconnect(() => reject(new Error('reconnected')));
    });
    const stored = this.#connection.jetstream.publish(subject, payload, {
      msgID: id,
      timeout: acknowledgeTimeoutMs,
    });
    try {
      await Promise.race([stored, replaced]);
    } finally {
      removeListener?.();
    }
  }
}

/** Resolves at the end of the time or of the signal, whichever is first. */
function abortableDelay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}
