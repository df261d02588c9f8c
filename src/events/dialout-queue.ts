// The work queue between the API and the workers that dial. It only wakes: SQL says what was accepted and hands a call
// out once, so a message that comes twice or too late does no harm. A process pulls no more than it has room for: the rest
// is there for others.

import { setTimeout as pause } from 'node:timers/promises';
import { AckPolicy, type Consumer, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { ensureConsumer, flushed, pullExpiresMs } from './consumers.ts';
import { dialoutSubject, streamNames } from './subjects.ts';

/** What a killed process had taken comes again after this. */
const defaultAcknowledgeWaitMs = 10_000;
/** After these the message is dropped: the sweep over SQL finds the call. */
const redeliveryDelaysMs = [200, 1_000, 5_000, 10_000, 30_000] as const;
/** What all processes together may hold: each holds few, and for milliseconds. */
const maxUnacknowledged = 2_000;
const pullFailurePauseMs = 500;

export type DialoutMessage = {
  /** The process that will publish the call's first fact, if it lives. */
  readonly acceptedBy: string;
  /** Left out: the call needs none. */
  readonly trunk?: string | undefined;
};

/**
 * Resolves when the queue has stored it.
 * @throws when NATS is away: the caller's SQL row is what counts.
 */
export async function publishDialout(
  connection: EventConnection,
  callId: string,
  message: DialoutMessage,
): Promise<void> {
  const subject = dialoutSubject(connection.prefix, callId);
  await connection.jetstream.publish(subject, JSON.stringify(message), { msgID: callId });
}

const messageSchema = z.object({ acceptedBy: z.string(), trunk: z.string().optional() });

/** What is not ours to read wakes all the same: SQL knows the call, or does not. */
function readMessage(message: JsMsg): DialoutMessage {
  try {
    return messageSchema.parse(message.json());
  } catch {
    return { acceptedBy: '' };
  }
}

export type DialoutConsumerOptions = {
  /** Handles under way at once. */
  readonly maxInFlight: number;
  /** Resolves when a call could be taken, with how many could; rejects at the signal. */
  readonly room: (signal: AbortSignal) => Promise<number>;
  /** Returns quickly: it takes the call over, and does not wait for its end. */
  readonly handle: (callId: string, message: DialoutMessage) => Promise<void>;
  readonly logger: Logger;
  readonly acknowledgeWaitMs?: number;
};

export async function consumeDialout(
  connection: EventConnection,
  options: DialoutConsumerOptions,
): Promise<{ stop(): Promise<void> }> {
  const stream = streamNames(connection.prefix).dialout;
  const durable = `${connection.prefix}_dialer`;
  await ensureConsumer(connection, stream, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(options.acknowledgeWaitMs ?? defaultAcknowledgeWaitMs),
    deliver_policy: DeliverPolicy.All,
    max_ack_pending: maxUnacknowledged,
    max_deliver: -1,
  });
  const consumer = await connection.jetstream.consumers.get(stream, durable);
  const workers = new DialoutWorkers(options);
  const stopped = new AbortController();
  const pulling = keepPulling(consumer, workers, options, stopped.signal);
  return {
    stop: async () => {
      workers.halt();
      stopped.abort(new Error('the dial-out queue is stopping'));
      await pulling;
      await flushed(connection);
      await workers.giveBack();
    },
  };
}

async function keepPulling(
  consumer: Consumer,
  workers: DialoutWorkers,
  options: DialoutConsumerOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await workers.halfDone();
      const room = Math.min(await options.room(signal), options.maxInFlight) - workers.held;
      if (room < 1) await workers.change();
      else await pull(consumer, workers, room, signal);
    } catch (error) {
      if (signal.aborted) return;
      options.logger.warn({ err: error }, 'the dial-out queue could not be read');
      await pause(pullFailurePauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Ends with the number of messages, with the request's time, or with the signal. */
async function pull(
  consumer: Consumer,
  workers: DialoutWorkers,
  count: number,
  signal: AbortSignal,
): Promise<void> {
  const messages = await consumer.fetch({ max_messages: count, expires: pullExpiresMs });
  const close = (): void => void messages.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    if (signal.aborted) close();
    for await (const message of messages) workers.take(message);
  } finally {
    signal.removeEventListener('abort', close);
  }
}

class DialoutWorkers {
  readonly #options: DialoutConsumerOptions;
  /** By stream sequence: while there is no room the same messages come again and again, and each counts once. */
  readonly #waiting = new Map<number, JsMsg>();
  readonly #running = new Map<number, { latest: JsMsg; readonly done: Promise<void> }>();
  readonly #listeners: (() => void)[] = [];
  #isHalted = false;

  constructor(options: DialoutConsumerOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#waiting.size + this.#running.size;
  }

  /** Resolves when one that is held has been handled. */
  change(): Promise<void> {
    return new Promise((resolve) => {
      if (this.held === 0 || this.#isHalted) resolve();
      else this.#listeners.push(resolve);
    });
  }

  /** Pulling a handful for each handful that is done would cost more than they do. */
  async halfDone(): Promise<void> {
    while (this.held > this.#options.maxInFlight / 2 && !this.#isHalted) await this.change();
  }

  take(message: JsMsg): void {
    const running = this.#running.get(message.seq);
    if (running !== undefined) running.latest = message;
    else this.#waiting.set(message.seq, message);
    this.#pump();
  }

  /** Hands no more calls over. */
  halt(): void {
    this.#isHalted = true;
    this.#tell();
  }

  async giveBack(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    for (const message of this.#waiting.values()) message.nak();
    this.#waiting.clear();
  }

  #pump(): void {
    for (const [sequence, message] of this.#waiting) {
      if (this.#isHalted || this.#running.size >= this.#options.maxInFlight) return;
      this.#waiting.delete(sequence);
      const done = this.#handle(message).then((failure) => {
        this.#settle(this.#running.get(sequence)?.latest ?? message, failure);
        this.#running.delete(sequence);
        this.#tell();
        this.#pump();
      });
      this.#running.set(sequence, { latest: message, done });
    }
  }

  #tell(): void {
    for (const listener of this.#listeners.splice(0)) listener();
  }

  /** What it failed with; never rejects. */
  async #handle(message: JsMsg): Promise<{ readonly error: unknown } | undefined> {
    try {
      await this.#options.handle(callIdOf(message), readMessage(message));
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  #settle(message: JsMsg, failure: { readonly error: unknown } | undefined): void {
    if (failure === undefined) {
      message.ack();
      return;
    }
    const delayMs = redeliveryDelaysMs[message.info.deliveryCount - 1];
    const fields = { err: failure.error, callId: callIdOf(message), delayMs };
    this.#options.logger.error(fields, 'dial-out not taken over');
    if (delayMs === undefined) message.term();
    else message.nak(delayMs);
  }
}

function callIdOf(message: JsMsg): string {
  return message.subject.slice(message.subject.lastIndexOf('.') + 1);
}
