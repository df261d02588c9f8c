// The bucket that bot flows read, on a real nats-server.

import { type KV, Kvm } from '@nats-io/kv';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CallContext } from '../../src/calls/contract/call-context.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { streamNames } from '../../src/events/subjects.ts';
import type { ContextFacts } from '../../src/interactions/context-facts.ts';
import { type ContextStore, openContextStore } from '../../src/interactions/context-store.ts';
import { ContextWriter } from '../../src/interactions/context-writer.ts';
import { eventBuilder } from '../support/call-events.ts';
import { acceptedCall } from '../support/call-records.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const nats = forSuite(startTestNats);
const connection = forSuite(() => nats.connect());
let store: ContextStore;
let bucket: KV;
beforeAll(async () => {
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
  store = openContextStore(connection);
  bucket = await new Kvm(connection.jetstream).open(streamNames(connection.prefix).contextBucket);
});

const keyOf = (event: CallEvent) => `${event.botId}.${event.callId}`;
const metadata = { campaign: 'spring' };

/** Reads the context that a bot flow sees. */
async function entryOf(event: CallEvent): Promise<CallContext | undefined> {
  return (await bucket.get(keyOf(event)))?.json<CallContext>();
}

const amdOf = async (event: CallEvent) => (await entryOf(event))?.session.UserSession.amd;

/** A process that has stored the events given to `stored`. */
function processWith(contexts: ContextStore = store, inDatabase: readonly CallEvent[] = []) {
  const reads: string[] = [];
  const writer = new ContextWriter({
    contexts,
    readFacts: async (callId) => {
      reads.push(callId);
      return inDatabase.length === 0
        ? undefined
        : ({ metadata, events: inDatabase } as ContextFacts);
    },
  });
  return {
    reads,
    write: (event: CallEvent) => writer.write(event),
    stored: (...events: readonly CallEvent[]) => {
      const { request, ...call } = acceptedCall();
      for (const event of events) {
        const { callId } = event;
        writer.note({ ...call, callId, request: { ...request, metadata } } as never, event);
      }
    },
    async publish(...events: readonly CallEvent[]) {
      this.stored(...events);
      for (const event of events) await writer.write(event);
    },
  };
}

describe('the context writer', () => {
  test('keeps the latest context of each call under its bot and call id', async () => {
    const process = processWith();
    const teller = eventBuilder();
    const dialing = teller.dialing();

    await process.publish(dialing);
    expect(await entryOf(dialing)).toBeUndefined();
    await process.publish(teller.answered());
    expect(await entryOf(dialing)).toEqual({
      session: {
        UserSession: {
          amd: [],
          amdInfo: { amdRingDurationInMs: 1_500, amdConnectDurationInMs: 2_000 },
        },
      },
      ...{ metadata, eventSequence: 2 },
    });
    await process.publish(teller.amd('amd_human_detected'));
    expect(await amdOf(dialing)).toEqual(['amd_human_detected']);
    expect((await entryOf(dialing))?.metadata).toEqual(metadata);
    expect(process.reads).toEqual([]);
  });

  test('writes the metadata of a call that nobody answered', async () => {
    const failed = eventBuilder().failed();

    await processWith().publish(failed);

    expect(await entryOf(failed)).toMatchObject({
      metadata,
      session: { UserSession: { amd: [] } },
    });
  });

  test('reads the events that another process has stored from the database', async () => {
    const teller = eventBuilder();
    const [answered, human] = [teller.answered(), teller.amd('amd_human_detected')];
    const stopped = teller.amd('amd_stopped');
    const process = processWith(store, [answered, human, stopped]);

    await process.publish(human);
    expect(await amdOf(human)).toEqual(['amd_human_detected']);
    await process.publish(stopped);
    expect(await amdOf(human)).toEqual(['amd_human_detected', 'amd_stopped']);
    expect(process.reads).toEqual([human.callId]);
  });

  test('writes nothing for a call that retention has deleted', async () => {
    const amd = eventBuilder().amd('amd_human_detected');

    await processWith().publish(amd);

    expect(await entryOf(amd)).toBeUndefined();
  });

  test('is not changed by an earlier event that is delivered again', async () => {
    const process = processWith();
    const teller = eventBuilder();
    const [answered, machine] = [teller.answered(), teller.amd('amd_machine_detected')];

    process.stored(answered, machine);
    await process.write(machine);
    await process.write(answered);

    expect(await amdOf(machine)).toEqual(['amd_machine_detected']);
  });

  test('does not replace a newer context with an older one, whichever process writes', async () => {
    const teller = eventBuilder();
    const [answered, human] = [teller.answered(), teller.amd('amd_human_detected')];
    const stopped = teller.amd('amd_stopped');
    const [former, present] = [processWith(), processWith()];
    for (const process of [former, present]) process.stored(answered, human, stopped);

    await former.write(answered);
    await present.write(stopped);
    await former.write(human);
    expect(await amdOf(human)).toEqual(['amd_human_detected', 'amd_stopped']);
    await present.write(answered);
    expect(await amdOf(human)).toEqual(['amd_human_detected', 'amd_stopped']);
  });

  test('does not write a context again at the end of the call', async () => {
    let writes = 0;
    const process = processWith({
      ...store,
      replace: (...entry) => {
        writes += 1;
        return store.replace(...entry);
      },
    });
    const teller = eventBuilder();

    await process.publish(teller.answered(), teller.completed());

    expect(writes).toBe(1);
  });

  test.each([
    ['an entry without a sequence', '{"session":{"UserSession":{"amd":[],"amdInfo":{}}}}'],
    ['rubbish', 'rubbish'],
  ])('replaces %s that another program wrote', async (_, text) => {
    const process = processWith();
    const teller = eventBuilder();
    const [answered, human] = [teller.answered(), teller.amd('amd_human_detected')];
    await bucket.put(keyOf(human), text);

    await process.publish(answered, human);

    expect(await amdOf(human)).toEqual(['amd_human_detected']);
  });

  test('fails if the bucket cannot be written, so that the caller retries', async () => {
    const process = processWith({
      replace: () => Promise.reject(new Error('NATS is unreachable')),
      revisionOf: () => Promise.resolve({ eventSequence: 0, revision: 0 }),
    });

    await expect(process.publish(eventBuilder().answered())).rejects.toThrow('NATS is unreachable');
  });
});
