// Durable consumers: created if missing, brought up to date if present.

import type { ConsumerConfig, ConsumerMessages } from '@nats-io/jetstream';
import { within } from '../lib/within.ts';
import type { EventConnection } from './connection.ts';

type WantedConsumer = Partial<ConsumerConfig> & { readonly durable_name: string };

/** @throws Error of the server where the present one cannot be changed into it. */
export async function ensureConsumer(
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
export async function endConsumption(
  connection: EventConnection,
  messages: ConsumerMessages,
): Promise<void> {
  await messages.close();
  await flushed(connection);
}

/** The server has read what was sent, or is unreachable. */
export async function flushed(connection: EventConnection): Promise<void> {
  await within(
    connection.nats.flush().catch(() => undefined),
    flushTimeoutMs,
  );
}
