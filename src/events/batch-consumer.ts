// Passes a stream's messages to a handler in batches. An idle consumer handles a message without
// delay, while under load the batches grow.
//
// Delivery is at least once and usually in order. An item may arrive twice, or after a later item,
// if a handler fails, a process dies, or two nodes share a consumer. So handlers must be idempotent
// and can't rely on the order.

import { setTimeout as pause } from 'node:timers/promises';
import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerMessages,
  DeliverPolicy,
  type JsMsg,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import type { EventConnection } from './connection.ts';
import { isAway, NatsUnavailable } from './nats-away.ts';
import { reasonOf } from './nats-status.ts';
import { deadLetterSubject } from './subjects.ts';

/**
 * The server redelivers messages that aren't acknowledged within this time, either because the
 * process has been killed or because the handler is slow.
 */
const acknowledgeWaitMs = 10_000;
/**
 * Bounds memory by limiting the unacknowledged batches, including the one being handled.
 */
const batchesAhead = 4;
/**
 * Delays before the server sends us a failed item again. We repeat the last delay forever, so no
 * items are lost while the store is down.
 */
const redeliveryDelaysMs = [200, 1_000, 2_000, 5_000] as const;
/**
 * After this many failures in a row we assume that the store is unreachable, since it's unlikely
 * that every item is bad.
 */
const maxFailuresInRow = 3;

/** How often a consumer whose stream is away tries to start. */
const startRetryMs = 1_000;

export type Read<Item> =
  | { readonly ok: true; readonly item: Item }
  | { readonly ok: false; readonly reason: string };

export type BatchConsumerOptions<Item> = {
  readonly stream: string;
  /**
   * The consumer's durable name without the prefix. We also use it as the last token of the subject
   * for dead letters.
   */
  readonly name: string;
  /** A single filter, because nats-server 2.9 doesn't support several. */
  readonly filterSubject?: string;
  /** Parses a message. If the message isn't a valid item, we publish it as a dead letter. */
  readonly read: (message: JsMsg) => Read<Item>;
  /**
   * Handles a batch completely or not at all. If this throws, all the items are delivered again.
   *
   * @returns the items that can never be handled, each with the reason to put into its dead letter
   */
  readonly handle: (items: readonly Item[]) => Promise<ReadonlyMap<Item, string>>;
  readonly maxBatch: number;
  readonly logger: Logger;
};

export type BatchConsumer = {
  /**
   * Finishes the current batch and returns all other messages to the server, so that other
   * processes can handle those messages.
   */
  stop(): Promise<void>;
};

type Held<Item> = { readonly message: JsMsg; readonly item: Item };

/**
 * Starts the consumer. If NATS or the stream is away, this happens as soon as it's back.
 *
 * @throws the server's error if it can't change the existing consumer
 */
export async function startBatchConsumer<Item>(
  connection: EventConnection,
  options: BatchConsumerOptions<Item>,
): Promise<BatchConsumer> {
  const { logger, name } = options;
  const pump = new Pump(connection, options);
  const stopping = new AbortController();
  let messages: ConsumerMessages | undefined;
  const start = async (): Promise<void> => {
    if (!connection.connected() || connection.streams.isAway(options.stream)) {
      throw new NatsUnavailable(`the stream ${options.stream} is away`);
    }
    messages = await consume(connection, options, pump);
  };
  let starting: Promise<void> | undefined;
  try {
    await start();
  } catch (error) {
    if (!isAway(error)) throw error;
    logger.warn({ err: error, consumer: name }, 'a consumer starts later');
    starting = keepStarting(start, stopping.signal, options);
  }
  return {
    stop: async () => {
      stopping.abort();
      pump.halt();
      await starting;
      if (messages !== undefined) await endConsumption(connection, messages);
      await pump.giveBack();
    },
  };
}

async function keepStarting(
  start: () => Promise<void>,
  signal: AbortSignal,
  { logger, name }: Pick<BatchConsumerOptions<never>, 'logger' | 'name'>,
): Promise<void> {
  let logged = '';
  for (;;) {
    await pause(startRetryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      await start();
      logger.info({ consumer: name }, 'a consumer has started');
      return;
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== logged) logger.warn({ err: error, consumer: name }, 'a consumer starts later');
      logged = reason;
    }
  }
}

async function consume<Item>(
  connection: EventConnection,
  { stream, filterSubject, name, maxBatch, logger }: BatchConsumerOptions<Item>,
  pump: Pump<Item>,
): Promise<ConsumerMessages> {
  const durable = `${connection.prefix}_${name}`;
  const maxHeld = maxBatch * batchesAhead;
  const ensure = () =>
    ensureConsumer(connection, stream, {
      durable_name: durable,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(acknowledgeWaitMs),
      deliver_policy: DeliverPolicy.All,
      max_ack_pending: maxHeld,
      max_deliver: -1,
      ...(filterSubject === undefined ? {} : { filter_subject: filterSubject }),
    });
  await ensure();
  const consumer = await connection.jetstream.consumers.get(stream, durable);
  const messages = await consumer.consume({
    max_messages: maxHeld,
    expires: connection.pullExpiresMs,
    callback: (message) => pump.take(message),
  });
  inBackground(recreate(messages, ensure, logger), logger, 'watching a consumer');
  return messages;
}

/**
 * Creates the consumer again if the server has lost it, e.g. together with its stream. The client
 * then goes on by itself.
 */
async function recreate(
  messages: ConsumerMessages,
  ensure: () => Promise<void>,
  logger: Logger,
): Promise<void> {
  for await (const status of messages.status()) {
    if (status.type !== 'consumer_not_found') continue;
    await ensure().catch((error: unknown) =>
      logger.warn({ err: error }, 'cannot create a lost consumer again'),
    );
  }
}

class Pump<Item> {
  readonly #connection: EventConnection;
  readonly #options: BatchConsumerOptions<Item>;
  /**
   * Waiting messages by stream sequence. A redelivered message replaces its copy.
   */
  readonly #held = new Map<number, Held<Item>>();
  #running: Promise<void> | undefined;
  /**
   * Dead letters that `take` is publishing. `giveBack` awaits them, because publishing on a closed
   * connection would end the process.
   */
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
    // Wait one microtask. By then, all messages from the same network read have arrived.
    if (!this.#isHalted) this.#running ??= Promise.resolve().then(() => this.#run());
  }

  /** Prevents further batches. */
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

  /** Handles a failed batch item by item, so one bad item doesn't hold up the rest. */
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
      logger.error(
        { err: error, consumer: name, items: batch.length },
        'cannot handle a batch of messages',
      );
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
    logger.error(
      { consumer: name, streamSequence: message.seq, reason },
      'a message becomes a dead letter',
    );
    try {
      const subject = deadLetterSubject(this.#connection.prefix, name);
      const letter = { reason, subject: message.subject, streamSequence: message.seq };
      await this.#connection.put(subject, JSON.stringify(letter), { id: `${name}-${message.seq}` });
      message.term();
    } catch (error) {
      logger.error({ err: error, consumer: name }, 'cannot store a dead letter');
      message.nak(redeliveryDelaysMs[1]);
    }
  }
}

type WantedConsumer = Partial<ConsumerConfig> & { readonly durable_name: string };

/**
 * Creates a durable consumer if it is missing, and updates it otherwise.
 *
 * @throws the server's error if it can't change the existing consumer
 */
async function ensureConsumer(
  connection: EventConnection,
  stream: string,
  wanted: WantedConsumer,
): Promise<void> {
  // The server only lets us change the acknowledge wait, the limits and the filter.
  const { consumers } = connection.manager;
  for await (const existing of consumers.list(stream)) {
    if (existing.name !== wanted.durable_name) continue;
    const { durable_name: name, ...changeable } = wanted;
    await consumers.update(stream, name, changeable);
    return;
  }
  await consumers.add(stream, wanted);
}

/** Short, so that an unreachable server can't block `stop`. */
const flushTimeoutMs = 500;

/**
 * Stops consuming and flushes. Without the flush, the server might receive returned messages before
 * it finds out that we've stopped. It would then send those messages to the same dead inbox and
 * redeliver them only after the acknowledge wait. (nats-server 2.9 may still do that with one
 * message.)
 */
async function endConsumption(
  connection: EventConnection,
  messages: ConsumerMessages,
): Promise<void> {
  await messages.close();
  await flush(connection);
}

/** Waits until the server has read everything we've sent, or until the time-out expires. */
async function flush(connection: EventConnection): Promise<void> {
  await within(
    connection.nats.flush().catch(() => undefined),
    flushTimeoutMs,
  );
}
