// Reads which events are on the calls stream, in one pass over the messages' headers. A call takes
// about a hundred bytes here, whatever its events contain.

import { type Consumer, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import { messageIdHeader } from './acknowledged-publishing.ts';
import type { EventConnection } from './connection.ts';
import { streamNames } from './subjects.ts';

/** The server sends a message within milliseconds. Longer means that the stream is away. */
const silenceTimeoutMs = 30_000;
const watchIntervalMs = 1_000;
/** Ids have lower numbers. A higher number is from a stranger, and would take much memory. */
const maxSequence = 100_000;
const eventId = /^evt-(.+)-(end|\d+)$/;

/** Tells which events are on the stream. */
export class EventIndex {
  /** For each call the numbers of its events, as bits. Bit 0 stands for the end. */
  readonly #calls = new Map<string, bigint>();

  add(id: string): void {
    const parsed = parseId(id);
    if (parsed === undefined) return;
    const known = this.#calls.get(parsed.call) ?? 0n;
    this.#calls.set(parsed.call, known | parsed.bit);
  }

  has(id: string): boolean {
    const parsed = parseId(id);
    if (parsed === undefined) return false;
    return ((this.#calls.get(parsed.call) ?? 0n) & parsed.bit) !== 0n;
  }
}

/** Returns how many messages the calls stream has stored since then. */
export async function messagesSince(connection: EventConnection, since: Date): Promise<number> {
  return (await (await consumerSince(connection, since)).info()).num_pending;
}

export type IndexOptions = {
  readonly since: Date;
  /** The sequence of the last message to read. */
  readonly lastSequence: number;
  /** Decides by a call's id, without `call-`, whether to keep its events. */
  readonly includes: (call: string) => boolean;
  readonly stopped?: AbortSignal | undefined;
};

/**
 * Reads the whole index or nothing. With a part of it, a repair would publish events twice.
 *
 * @throws Error if the stream stops responding, or if the signal aborts
 */
export async function readEventIndex(
  connection: EventConnection,
  { since, lastSequence, includes, stopped }: IndexOptions,
): Promise<EventIndex> {
  const index = new EventIndex();
  const consumer = await consumerSince(connection, since);
  const { num_pending: pending } = await consumer.info();
  if (pending === 0) return index;
  const messages = await consumer.consume();
  const stop = (): void => messages.stop();
  stopped?.addEventListener('abort', stop, { once: true });
  let lastMs = performance.now();
  const watch = setInterval(() => {
    if (performance.now() - lastMs > silenceTimeoutMs) stop();
  }, watchIntervalMs);
  try {
    for await (const message of messages) {
      lastMs = performance.now();
      if (message.seq <= lastSequence) addTo(index, message, includes);
      if (message.seq >= lastSequence || message.info.pending === 0) return index;
    }
  } finally {
    clearInterval(watch);
    stopped?.removeEventListener('abort', stop);
    await messages.close();
  }
  stopped?.throwIfAborted();
  throw new Error('the calls stream does not respond');
}

async function consumerSince(
  { jetstream, prefix }: EventConnection,
  since: Date,
): Promise<Consumer> {
  return await jetstream.consumers.get(streamNames(prefix).calls, {
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: since.toISOString(),
    headers_only: true,
  });
}

function addTo(index: EventIndex, { headers }: JsMsg, includes: IndexOptions['includes']): void {
  const id = headers?.get(messageIdHeader) ?? '';
  const [, call] = eventId.exec(id) ?? [];
  if (call !== undefined && includes(call)) index.add(id);
}

/** Returns the number of an event, or 0 for an end and for ids that aren't those of events. */
export function numberOfEvent(id: string): number {
  const [, , number] = eventId.exec(id) ?? [];
  return number === undefined || number === 'end' ? 0 : Number(number);
}

function parseId(id: string): { readonly call: string; readonly bit: bigint } | undefined {
  const [, call, number] = eventId.exec(id) ?? [];
  if (call === undefined || number === undefined) return undefined;
  if (number === 'end') return { call, bit: 1n };
  const sequence = Number(number);
  return sequence > maxSequence ? undefined : { call, bit: 1n << BigInt(sequence) };
}
