// The bucket that bot flows read, on a real nats-server.

import { Kvm } from '@nats-io/kv';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CallContext } from '../../src/calls/contract/call-context.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { AmdEventName } from '../../src/calls/detection/amd-event.ts';
import { ensureStreams } from '../../src/events/streams.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { openContextStore } from '../../src/interactions/context-store.ts';
import { createContextWriter } from '../../src/interactions/context-writer.ts';
import { eventBuilder } from '../support/call-events.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';

const nats = forSuite(startTestNats);
const connection = forSuite(() => nats.connect());
beforeAll(async () => {
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
});

function withContext(event: CallEvent, ...amd: readonly AmdEventName[]): CallEvent {
  const context: CallContext = {
    session: { UserSession: { amd, amdInfo: {} } },
    metadata: { campaign: 'spring' },
  };
  return { ...event, data: { ...event.data, context } } as CallEvent;
}

describe('the context writer', () => {
  test('keeps the latest context of each call under its bot and call id', async () => {
    const store = await openContextStore(connection);
    const write = createContextWriter(store);
    const teller = eventBuilder();
    const key = `st-bot.${teller.identity.callId}`;
    const [dialing, answered] = [teller.dialing(), withContext(teller.answered())];
    const human = withContext(teller.amd('amd_human_detected'), 'amd_human_detected');

    await write(dialing);
    expect(await store.get(key)).toBeUndefined();
    await write(answered);
    await write(human);
    expect((await store.get(key))?.session.UserSession.amd).toEqual(['amd_human_detected']);
    expect((await store.get(key))?.metadata).toEqual({ campaign: 'spring' });
  });

  test('is not changed by an earlier event that is delivered again', async () => {
    const store = await openContextStore(connection);
    const write = createContextWriter(store);
    const teller = eventBuilder();
    const answered = withContext(teller.answered());
    const machine = withContext(teller.amd('amd_machine_detected'), 'amd_machine_detected');

    await write(machine);
    await write(answered);

    const context = await store.get(`st-bot.${teller.identity.callId}`);
    expect(context?.session.UserSession.amd).toEqual(['amd_machine_detected']);
  });

  test('does not mistake another client’s entry for a context', async () => {
    const store = await openContextStore(connection);
    const bucket = await new Kvm(connection.jetstream).open(
      streamNames(connection.prefix).contextBucket,
    );

    await bucket.put('st-bot.call-x', 'rubbish');
    await bucket.put('st-bot.call-y', '{"session":{}}');

    expect(await store.get('st-bot.call-x')).toBeUndefined();
    expect(await store.get('st-bot.call-y')).toBeUndefined();
  });

  test('does not replace a newer context with an older one, whichever process writes', async () => {
    const store = await openContextStore(connection);
    const teller = eventBuilder();
    const answered = withContext(teller.answered());
    const human = withContext(teller.amd('amd_human_detected'), 'amd_human_detected');
    const stopped = withContext(teller.amd('amd_stopped'), 'amd_human_detected', 'amd_stopped');
    const [former, present] = [createContextWriter(store), createContextWriter(store)];
    const current = async () =>
      (await store.get(`st-bot.${teller.identity.callId}`))?.session.UserSession.amd;

    await former(answered);
    await present(stopped);
    await former(human);
    expect(await current()).toEqual(['amd_human_detected', 'amd_stopped']);
    await present(answered);
    expect(await current()).toEqual(['amd_human_detected', 'amd_stopped']);
  });

  test('does not write a context again if an event leaves it unchanged', async () => {
    const store = await openContextStore(connection);
    let writes = 0;
    const write = createContextWriter({
      ...store,
      replace: (...context) => {
        writes += 1;
        return store.replace(...context);
      },
    });
    const teller = eventBuilder();
    const stopped = withContext(teller.amd('amd_stopped'), 'amd_stopped');

    await write(stopped);
    await write(withContext(teller.completed(), 'amd_stopped'));
    expect(writes).toBe(1);
  });

  test('replaces an entry without a sequence that another program wrote', async () => {
    const store = await openContextStore(connection);
    const bucket = await new Kvm(connection.jetstream).open(
      streamNames(connection.prefix).contextBucket,
    );
    const teller = eventBuilder();
    const event = withContext(teller.answered(), 'amd_human_detected');
    const key = `st-bot.${teller.identity.callId}`;
    await bucket.put(
      key,
      JSON.stringify({ session: { UserSession: { amd: [], amdInfo: {} } }, metadata: {} }),
    );

    await createContextWriter(store)(event);

    expect((await store.get(key))?.session.UserSession.amd).toEqual(['amd_human_detected']);
  });

  test('fails if the bucket cannot be written, so that the caller retries', async () => {
    const write = createContextWriter({
      replace: () => Promise.reject(new Error('NATS is unreachable')),
      revisionOf: () => Promise.resolve({ eventSequence: 0, revision: 0 }),
    });

    await expect(write(eventBuilder().answered())).rejects.toThrow('NATS is unreachable');
  });
});
