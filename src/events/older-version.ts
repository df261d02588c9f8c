// For one version: what gateways without an outbox left on the server. They published first, and read back what was to be stored.

import { JetStreamApiError } from '@nats-io/jetstream';
import type { EventConnection } from './connection.ts';
import { streamNames } from './subjects.ts';

/** Their durable consumers of the calls stream. */
export const olderConsumers = ['interactions', 'notifier'] as const;

/** Whether one of their consumers is there. */
export async function hasOlderConsumers(connection: EventConnection): Promise<boolean> {
  const present: string[] = [];
  for await (const { name } of connection.manager.consumers.list(
    streamNames(connection.prefix).calls,
  )) {
    present.push(name);
  }
  return olderConsumers.some((name) => present.includes(`${connection.prefix}_${name}`));
}

/** Their consumers, and the stream that carried calls. */
export async function removeOlderVersion(connection: EventConnection): Promise<void> {
  const { manager, prefix } = connection;
  for (const name of olderConsumers) {
    await orGone(manager.consumers.delete(streamNames(prefix).calls, `${prefix}_${name}`));
  }
  await orGone(manager.streams.delete(`${prefix}_dialout`));
}

async function orGone(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof JetStreamApiError && error.status === 404)) throw error;
  }
}
