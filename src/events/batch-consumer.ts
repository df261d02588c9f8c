// Feeds what is on a stream to a handler in batches: one at a time with no delay when idle, many at once under load.
//
// At least once, and nearly in order: a redelivery (a handler that failed, a process that died, two nodes on one
// consumer) may bring an item again or after a later one. Handlers must be idempotent and must not rely on the order.

import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerMessages,
  DeliverPolicy,
  type JsMsg,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import type { EventConnection } from './connection.ts';
import { deadLetterSubject } from './subjects.ts';

/** A handler that takes longer gets its items a second time; and what a killed process had taken comes after this. */
const acknowledgeWaitMs = 10_000;
/** Batches that may be out unacknowledged: one being handled, the next ones already here. Bounds memory too. */
const batchesAhead = 4;
/** A failed item comes again after these, the last one for ever: the store being away must lose nothing. */
const redeliveryDelaysMs = [200, 1_000, 2_000, 5_000] as const;
/** So many failures in a row mean that the store is unreachable, and not that one item is bad. */
const maxFailuresInRow = 3;

export type Read<Item> =
  | { readonly ok: true; readonly item: Item }
  | { readonly ok: false; readonly reason: string };

export type BatchConsumerOptions<Item> = {
  readonly stream: string;
  /** Durable name, without the prefix; last token of the dead letters' subject. */
  readonly name: string;
  /** One, because nats-server 2.9 knows no several filters. */
  readonly filterSubject?: string;
  /** What is no item becomes a dead letter with the reason. */
  readonly read: (message: JsMsg) => Read<Item>;
  /**
   * All or nothing: a throw brings every item of the batch again. Those that no repetition would mend are returned, with the
   * reason for their dead letter.
   */
  readonly handle: (items: readonly Item[]) => Promise<ReadonlyMap<Item, string>>;
  readonly maxBatch: number;
  readonly logger: Logger;
};

export type BatchConsumer = {
  /** Finishes the batch under way; the rest is given back, for the next one to take at once. */
  stop(): Promise<void>;
};

type Held<Item> = { readonly message: JsMsg; readonly item: Item };

export async function startBatchConsumer<Item>(
  connection: EventConnection,
  options: BatchConsumerOptions<Item>,
): Promise<BatchConsumer> {
  const { stream, filterSubject } = options;
  const durable = `${connection.prefix}_${options.name}`;
  const maxHeld = options.maxBatch * batchesAhead;
  await ensureConsumer(connection, stream, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(acknowledgeWaitMs),
    deliver_policy: DeliverPolicy.All,
    max_ack_pending: maxHeld,
    max_deliver: -1,
    ...(filterSubject === undefined ? {} : { filter_subject: filterSubject }),
  });
  const pump = new Pump(connection, options);
  const consumer = await connection.jetstream.consumers.get(stream, durable);
  const messages = await consumer.consume({
    max_messages: maxHeld,
    expires: connection.pullExpiresMs,
    callback: (message) => pump.take(message),
  });
  return {
    stop: async () => {
      pump.halt();
      await endConsumption(connection, messages);
      await pump.giveBack();
    },
  };
}

class Pump<Item> {
  readonly #connection: EventConnection;
  readonly #options: BatchConsumerOptions<Item>;
  /** By stream sequence: a redelivery replaces the copy that waited too long. */
  readonly #held = new Map<number, Held<Item>>();
  #running: Promise<void> | undefined;
  /** Of what could not be read, beside the batches: on a closed connection one would end the process. */
  readonly #deadLetters = new Set<Promise<void>>();
  #isHalted = false;

  constructor(connection: EventConnection, options: BatchConsumerOptions<Item>) {
    this.#connection = connection;
    this.#options = options;
  }

  take(message: JsMsg): void {
    const read = this.#options.read(message);
    if (!read.ok) {
      const letter = this.#deadLetter(message, read.reason).finally(() =>
        this.#deadLetters.delete(letter),
      );
      this.#deadLetters.add(letter);
      return;
    }
    this.#held.set(message.seq, { message, item: read.item });
    // A microtask later all messages of the same network read are here.
    if (!this.#isHalted) this.#running ??= Promise.resolve().then(() => this.#run());
  }

  /** No batch after the one under way. */
  halt(): void {
    this.#isHalted = true;
  }

  async giveBack(): Promise<void> {
    await this.#running;
    await Promise.all(this.#deadLetters);
    for (const { message } of this.#held.values()) message.nak();
    this.#held.clear();
  }

  async #run(): Promise<void> {
    while (this.#held.size > 0 && !this.#isHalted) {
      const batch: Held<Item>[] = [];
      for (const [sequence, held] of this.#held) {
        if (batch.length === this.#options.maxBatch) break;
        batch.push(held);
        this.#held.delete(sequence);
      }
      await this.#handle(batch);
    }
    this.#running = undefined;
  }

  async #handle(batch: readonly Held<Item>[]): Promise<void> {
    if (await this.#try(batch)) return;
    if (batch.length === 1) return this.#postpone(batch);
    await this.#handleSingly(batch);
  }

  /** Finds the items that make a batch fail, so that one bad item does not stop the others. */
  async #handleSingly(batch: readonly Held<Item>[]): Promise<void> {
    let failuresInRow = 0;
    for (const held of batch) {
      if (failuresInRow >= maxFailuresInRow) {
        this.#postpone([held]);
      } else if (await this.#try([held])) {
        failuresInRow = 0;
      } else {
        failuresInRow += 1;
        this.#postpone([held]);
      }
    }
  }

  async #try(batch: readonly Held<Item>[]): Promise<boolean> {
    const { handle, logger, name } = this.#options;
    let refused: ReadonlyMap<Item, string>;
    try {
      refused = await handle(batch.map((held) => held.item));
    } catch (error) {
      logger.error({ err: error, consumer: name, items: batch.length }, 'batch not handled');
      return false;
    }
    for (const { message, item } of batch) {
      const reason = refused.get(item);
      if (reason === undefined) message.ack();
      else await this.#deadLetter(message, reason);
    }
    return true;
  }

  #postpone(batch: readonly Held<Item>[]): void {
    for (const { message } of batch) {
      const delivery = Math.min(message.info.deliveryCount, redeliveryDelaysMs.length);
      message.nak(redeliveryDelaysMs[delivery - 1] ?? redeliveryDelaysMs[0]);
    }
  }

  async #deadLetter(message: JsMsg, reason: string): Promise<void> {
    const { logger, name } = this.#options;
    logger.error({ consumer: name, streamSequence: message.seq, reason }, 'message is dead');
    try {
      const subject = deadLetterSubject(this.#connection.prefix, name);
      const letter = { reason, subject: message.subject, streamSequence: message.seq };
      await this.#connection.put(subject, JSON.stringify(letter), { id: `${name}-${message.seq}` });
      message.term();
    } catch (error) {
      logger.error({ err: error, consumer: name }, 'dead letter not stored');
      message.nak(redeliveryDelaysMs[1]);
    }
  }
}

type WantedConsumer = Partial<ConsumerConfig> & { readonly durable_name: string };

/**
 * Creates a durable consumer if it is missing, and brings it up to date if it is present.
 *
 * @throws Error of the server where the present one cannot be changed into it.
 */
async function ensureConsumer(
  connection: EventConnection,
  stream: string,
  wanted: WantedConsumer,
): Promise<void> {
  // Create with the same configuration is a no-op; with another one, an update of what may change (the acknowledge wait
  // and limits, the filter). What may not change is the server's error, told as it is.
  const { consumers } = connection.manager;
  for await (const present of consumers.list(stream)) {
    if (present.name !== wanted.durable_name) continue;
    const { durable_name: name, ...changeable } = wanted;
    await consumers.update(stream, name, changeable);
    return;
  }
  await consumers.add(stream, wanted);
}

/** NATS being away must not hold a stop up. */
const flushTimeoutMs = 500;

/**
 * Takes no more messages. What is given back before the server knows of it would be delivered to the same, dead inbox, and
 * come again only after the acknowledge wait; hence the flush. (nats-server 2.9 may still do that with one message.)
 */
async function endConsumption(
  connection: EventConnection,
  messages: ConsumerMessages,
): Promise<void> {
  await messages.close();
  await flushed(connection);
}

/** The server has read what was sent, or is unreachable. */
async function flushed(connection: EventConnection): Promise<void> {
  await within(
    connection.nats.flush().catch(() => undefined),
    flushTimeoutMs,
  );
}
