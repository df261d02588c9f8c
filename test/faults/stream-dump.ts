// Reads every message of the calls stream. If another process republishes a message, the order of
// its members may differ, so the order is normalised.

import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { readEvent } from '../support/published-events.ts';
import type { StreamEvent } from './aftermath.ts';

export type StoredEvent = {
  readonly raw: string;
  readonly event: StreamEvent;
  /** When the stream stored the event, by `Date.now()`. */
  readonly storedAt: number;
};

const nanosecondsPerMs = 1_000_000;

export async function eventsOnStream(natsUrl: string): Promise<readonly StoredEvent[]> {
  const urls = natsUrl.split(',').map((one) => new URL(one));
  const connection = await connect({
    servers: urls.map(({ host }) => host),
    user: urls[0]?.username ?? '',
    pass: urls[0]?.password ?? '',
  });
  try {
    const consumer = await jetstream(connection).consumers.get('offhook_calls');
    const { num_pending: pending } = await consumer.info();
    const events: StoredEvent[] = [];
    if (pending === 0) return events;
    for await (const message of await consumer.consume()) {
      const event = readEvent(message) as StreamEvent;
      const storedAt = message.info.timestampNanos / nanosecondsPerMs;
      events.push({ raw: canonicalOf(event), event, storedAt });
      if (message.info.pending === 0) break;
    }
    // A message that the client skips must not look like an event that Offhook lost.
    if (events.length < pending) {
      throw new Error(`read ${events.length} of the ${pending} messages of the calls stream`);
    }
    return events;
  } finally {
    await connection.close();
  }
}

/** Serialises a value with sorted members, so that equal values give equal texts. */
function canonicalOf(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
