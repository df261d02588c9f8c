// Every message of the calls stream, raw.

import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { Fact } from './invariants.ts';

export type StoredFact = { readonly raw: string; readonly fact: Fact };

export async function factsOnStream(natsUrl: string): Promise<readonly StoredFact[]> {
  const url = new URL(natsUrl);
  const connection = await connect({ servers: url.host, user: url.username, pass: url.password });
  try {
    const consumer = await jetstream(connection).consumers.get('offhook_calls');
    const { num_pending: pending } = await consumer.info();
    const facts: StoredFact[] = [];
    if (pending === 0) return facts;
    for await (const message of await consumer.consume()) {
      const raw = message.string();
      facts.push({ raw, fact: JSON.parse(raw) as Fact });
      if (message.info.pending === 0) break;
    }
    return facts;
  } finally {
    await connection.close();
  }
}
