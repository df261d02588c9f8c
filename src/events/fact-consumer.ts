// Feeds facts to a handler in batches: one at a time with no delay when idle, many at once under load.
//
// At least once, and nearly in order: a redelivery (a handler that failed, a process that died, two nodes on one
// consumer) may bring a fact again or after a later one. Handlers must be idempotent by event id and must not rely on
// the order; sequences are in the facts for that.

import { AckPolicy, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { CallEvent } from '../calls/call-events.ts';
import type { Logger } from '../lib/logger.ts';
import { parseCallEvent } from './call-event-schema.ts';
import type { EventConnection } from './connection.ts';
import { endConsumption, ensureConsumer } from './consumers.ts';
import { deadLetterSubject, streamNames } from './subjects.ts';

/** A handler that takes longer gets its facts a second time; and what a killed process had taken comes after this. */
const acknowledgeWaitMs = 10_000;
/** Batches that may be out unacknowledged: one being handled, the next ones already here. Bounds memory too. */
const batchesAhead = 4;
/** A failed fact comes again after these, the last one for ever: the store being away must lose nothing. */
const redeliveryDelaysMs = [200, 1_000, 2_000, 5_000] as const;
/** So many failures in a row mean that the store is away, and not that one fact is bad. */
const maxFailuresInRow = 3;

export type FactConsumerOptions = {
  /** Durable name, without the prefix. */
  readonly name: string;
  /** Of the event type: only these facts. One, because nats-server 2.9 knows no several filters. */
  readonly filter?: CallEvent['type'];
  /** All or nothing: a throw brings every fact of the batch again. */
  readonly handle: (facts: readonly CallEvent[]) => Promise<void>;
  readonly maxBatch: number;
  readonly logger: Logger;
};

export type FactConsumer = {
  /** Every fact on the stream is handled. Asks the server. */
  isCaughtUp(): Promise<boolean>;
  /** Finishes the batch under way; the rest is given back, for the next one to take at once. */
  stop(): Promise<void>;
};

type Held = { readonly message: JsMsg; readonly fact: CallEvent };

export async function startFactConsumer(
  connection: EventConnection,
  options: FactConsumerOptions,
): Promise<FactConsumer> {
  const stream = streamNames(connection.prefix).calls;
  const durable = `${connection.prefix}_${options.name}`;
  const maxHeld = options.maxBatch * batchesAhead;
  await ensureConsumer(connection, stream, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(acknowledgeWaitMs),
    deliver_policy: DeliverPolicy.All,
    max_ack_pending: maxHeld,
    max_deliver: -1,
    ...(options.filter === undefined
      ? {}
      : { filter_subject: `${connection.prefix}.call.*.*.*.${options.filter}` }),
  });
  const pump = new FactPump(connection, options);
  const consumer = await connection.jetstream.consumers.get(stream, durable);
  const messages = await consumer.consume({
    max_messages: maxHeld,
    callback: (message) => pump.take(message),
  });
  return {
    isCaughtUp: async () => {
      const { num_pending, num_ack_pending } = await consumer.info();
      return num_pending + num_ack_pending === 0;
    },
    stop: async () => {
      pump.halt();
      await endConsumption(connection, messages);
      await pump.giveBack();
    },
  };
}

class FactPump {
  readonly #connection: EventConnection;
  readonly #options: FactConsumerOptions;
  /** By stream sequence: a redelivery replaces the copy that waited too long. */
  readonly #held = new Map<number, Held>();
  #running: Promise<void> | undefined;
  #isHalted = false;

  constructor(connection: EventConnection, options: FactConsumerOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  take(message: JsMsg): void {
    const parsed = parseCallEvent(message.string());
    if (!parsed.ok) {
      void this.#bury(message, parsed.reason);
      return;
    }
    this.#held.set(message.seq, { message, fact: parsed.event });
    // A microtask later all messages of the same network read are here.
    if (!this.#isHalted) this.#running ??= Promise.resolve().then(() => this.#run());
  }

  /** No batch after the one under way. */
  halt(): void {
    this.#isHalted = true;
  }

  async giveBack(): Promise<void> {
    await this.#running;
    for (const { message } of this.#held.values()) message.nak();
    this.#held.clear();
  }

  async #run(): Promise<void> {
    while (this.#held.size > 0 && !this.#isHalted) {
      const batch: Held[] = [];
      for (const [sequence, held] of this.#held) {
        if (batch.length === this.#options.maxBatch) break;
        batch.push(held);
        this.#held.delete(sequence);
      }
      await this.#handle(batch);
    }
    this.#running = undefined;
  }

  async #handle(batch: readonly Held[]): Promise<void> {
    if (await this.#try(batch)) return;
    if (batch.length === 1) return this.#postpone(batch);
    await this.#handleSingly(batch);
  }

  /** Finds the facts that make a batch fail, so that one bad fact does not stop the others. */
  async #handleSingly(batch: readonly Held[]): Promise<void> {
    const failedCalls = new Set<string>();
    let failuresInRow = 0;
    for (const held of batch) {
      // What follows a fact that failed waits for it: its call stays in order.
      if (failuresInRow >= maxFailuresInRow || failedCalls.has(held.fact.callId)) {
        this.#postpone([held]);
      } else if (await this.#try([held])) {
        failuresInRow = 0;
      } else {
        failuresInRow += 1;
        failedCalls.add(held.fact.callId);
        this.#postpone([held]);
      }
    }
  }

  async #try(batch: readonly Held[]): Promise<boolean> {
    try {
      await this.#options.handle(batch.map((held) => held.fact));
    } catch (error) {
      this.#options.logger.error(
        { err: error, consumer: this.#options.name, facts: batch.length },
        'facts not handled',
      );
      return false;
    }
    for (const { message } of batch) message.ack();
    return true;
  }

  #postpone(batch: readonly Held[]): void {
    for (const { message } of batch) {
      const delivery = Math.min(message.info.deliveryCount, redeliveryDelaysMs.length);
      message.nak(redeliveryDelaysMs[delivery - 1] ?? redeliveryDelaysMs[0]);
    }
  }

  async #bury(message: JsMsg, reason: string): Promise<void> {
    const { logger, name } = this.#options;
    logger.error({ consumer: name, streamSequence: message.seq, reason }, 'invalid fact');
    try {
      const subject = deadLetterSubject(this.#connection.prefix, name);
      const letter = { reason, subject: message.subject, streamSequence: message.seq };
      await this.#connection.jetstream.publish(subject, JSON.stringify(letter), {
        msgID: `${name}-${message.seq}`,
      });
      message.term();
    } catch (error) {
      logger.error({ err: error, consumer: name }, 'dead letter not stored');
      message.nak(redeliveryDelaysMs[1]);
    }
  }
}
