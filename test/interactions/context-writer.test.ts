// The bucket that bot flows read, on a real nats-server.

import { Kvm } from '@nats-io/kv';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AmdEventName } from '../../src/calls/contract/amd-event.ts';
import type { CallContext } from '../../src/calls/contract/call-context.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { ensureStreams } from '../../src/events/streams.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { openContextStore } from '../../src/interactions/context-store.ts';
import { createContextWriter } from '../../src/interactions/context-writer.ts';
import { factTeller } from '../support/call-facts.ts';
import { startTestNats, type TestNats } from '../support/nats.ts';

let nats: TestNats;
let connection: EventConnection;
beforeAll(async () => {
  nats = await startTestNats();
  connection = await nats.connect();
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
});
afterAll(async () => {
  await nats.stop();
});

function withContext(fact: CallEvent, ...amd: readonly AmdEventName[]): CallEvent {
  const context: CallContext = {
    session: { UserSession: { amd, amdInfo: {} } },
    metadata: { campaign: 'spring' },
  };
  return { ...fact, data: { ...fact.data, context } } as CallEvent;
}

describe('the context writer', () => {
  test('keeps the latest context of each call under its bot and call id', async () => {
    const store = await openContextStore(connection);
    const write = createContextWriter(store);
    const teller = factTeller();
    const key = `st-bot.${teller.identity.callId}`;
    const [dialing, answered] = [teller.dialing(), withContext(teller.answered())];
    const human = withContext(teller.amd('amd_human_detected'), 'amd_human_detected');

    await write([dialing]);
    expect(await store.get(key)).toBeUndefined();
    await write([answered, human]);
    expect((await store.get(key))?.session.UserSession.amd).toEqual(['amd_human_detected']);
    expect((await store.get(key))?.metadata).toEqual({ campaign: 'spring' });
  });

  test('an earlier fact that is delivered again changes nothing', async () => {
    const store = await openContextStore(connection);
    const write = createContextWriter(store);
    const teller = factTeller();
    const answered = withContext(teller.answered());
    const machine = withContext(teller.amd('amd_machine_detected'), 'amd_machine_detected');

    await write([machine]);
    await write([answered]);

    const context = await store.get(`st-bot.${teller.identity.callId}`);
    expect(context?.session.UserSession.amd).toEqual(['amd_machine_detected']);
  });

  test('what somebody else wrote into the bucket is not taken for a context', async () => {
    const store = await openContextStore(connection);
    const bucket = await new Kvm(connection.jetstream).open(
      streamNames(connection.prefix).contextBucket,
    );

    await bucket.put('st-bot.call-x', 'rubbish');
    await bucket.put('st-bot.call-y', '{"session":{}}');

    expect(await store.get('st-bot.call-x')).toBeUndefined();
    expect(await store.get('st-bot.call-y')).toBeUndefined();
  });

  test('a bucket that cannot be written fails the batch, so that it comes again', async () => {
    const write = createContextWriter({
      put: () => Promise.reject(new Error('NATS is away')),
      get: () => Promise.resolve(undefined),
    });

    await expect(write([factTeller().answered()])).rejects.toThrow('NATS is away');
  });
});
