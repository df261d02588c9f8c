import { RetentionPolicy } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { describe, expect, test } from 'vitest';
import { createPublisher } from '../../src/events/publisher.ts';
import { callSubject, isSubjectToken, streamNames } from '../../src/events/subjects.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventBuilder } from '../support/call-events.ts';
import { startEventReader } from '../support/event-reader.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const dayNs = 86_400_000_000_000;

describe('streams and buckets', () => {
  const nats = forSuite(startTestNats);

  test('are created when they are missing', async () => {
    const { manager, prefix } = await ensured('fresh', { eventDays: 30, contextHours: 24 });

    const { config: calls } = await manager.streams.info('fresh_calls');
    expect(calls).toMatchObject({
      subjects: ['fresh.call.>'],
      retention: 'limits',
      storage: 'file',
      max_age: 30 * dayNs,
      duplicate_window: 120_000_000_000,
    });
    const { config: ingest } = await manager.streams.info('fresh_ingest');
    expect(ingest).toMatchObject({
      subjects: [
        'fresh.ingest.messages.*',
        'fresh.ingest.conversations.*',
        'fresh.ingest.testruns.*',
      ],
      retention: 'limits',
      storage: 'file',
      max_age: 30 * dayNs,
      duplicate_window: 120_000_000_000,
    });
    const bucket = await manager.streams.info(`KV_${streamNames(prefix).contextBucket}`);
    expect(bucket.config.max_age).toBe(dayNs);
  });

  test('are updated to the configuration, and keep their messages', async () => {
    const connection = await ensured('changed', { eventDays: 30, contextHours: 24 });
    const publisher = createPublisher(connection, logger);
    await publisher.publish([eventBuilder().failed()]);
    await publisher.stop(1_000);

    await ensureStreams(connection, { eventDays: 7, contextHours: 1 });
    await ensureStreams(connection, { eventDays: 7, contextHours: 1 });

    const { config, state } = await connection.manager.streams.info('changed_calls');
    expect(config.max_age).toBe(7 * dayNs);
    expect(state.messages).toBe(1);
    const bucket = await connection.manager.streams.info('KV_changed-call-context');
    expect(bucket.config.max_age).toBe(dayNs / 24);
  });

  test('reject a stream of the same name that has another purpose', async () => {
    const connection = await nats.connect('taken');
    await connection.manager.streams.add({
      name: 'taken_calls',
      subjects: ['taken.call.>'],
      retention: RetentionPolicy.Workqueue,
    });

    await expect(ensureStreams(connection, { eventDays: 1, contextHours: 1 })).rejects.toThrow(
      'taken_calls exists with retention workqueue',
    );
  });

  test('the bucket has the name that bot flows use', async () => {
    const connection = await ensured('offhook', { eventDays: 1, contextHours: 1 });
    const bucket = await new Kvm(connection.jetstream).open('call-context');

    await bucket.put('st-bot.call-1', '{}');

    expect((await bucket.get('st-bot.call-1'))?.string()).toBe('{}');
  });

  test('events are stored and read after the server was killed in between', async () => {
    const connection = await ensured('killed', { eventDays: 1, contextHours: 1 });
    const publisher = createPublisher(connection, logger);
    const seen = new Set<string>();
    const consumer = await startEventReader(connection, (events) => {
      for (const event of events) seen.add(event.id);
    });
    const calls = Array.from({ length: 20 }, () => eventBuilder());
    await Promise.all(calls.map((call) => publisher.publish([call.dialing()])));

    process.kill(nats.server.pid ?? 0, 'SIGKILL');
    await Promise.all(calls.map((call) => publisher.publish([call.failed()])));
    await eventually(() => seen.size === 40, 'every event arrives');

    await consumer.stop();
    await publisher.stop(1_000);
  });

  async function ensured(prefix: string, retention: Parameters<typeof ensureStreams>[1]) {
    const connection = await nats.connect(prefix);
    await ensureStreams(connection, retention);
    return connection;
  }
});

describe('subjects', () => {
  test('contain identifiers and nothing that could widen them', () => {
    const address = { accountId: 'acme', botId: 'st-1', callId: 'call-1' };

    expect(callSubject('offhook', address, 'amd')).toBe('offhook.call.acme.st-1.call-1.amd');
    for (const bad of ['', 'a.b', '*', '>', 'a b', 'a\r\nPUB', 'x'.repeat(201)]) {
      expect(isSubjectToken(bad)).toBe(false);
      expect(() => callSubject('offhook', { ...address, botId: bad }, 'amd')).toThrow(RangeError);
    }
  });
});
