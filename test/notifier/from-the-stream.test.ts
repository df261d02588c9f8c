import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { EventConnection } from '../../src/events/connection.ts';
import { startEventConsumer } from '../../src/events/event-consumer.ts';
import { createPublisher } from '../../src/events/publisher.ts';
import { ensureStreams } from '../../src/events/streams.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats, type TestNats } from '../support/nats.ts';
import { glance, type Receiver, startReceiver } from '../support/receiver.ts';
import {
  createNotifierRig,
  type NotifierRig,
  personCall,
  quickSchedule,
  type TestNode,
} from './notifier-rig.ts';

describe('from the stream to the receiver', () => {
  let nats: TestNats;
  let database: TestDatabase;
  let receiver: Receiver;
  let rig: NotifierRig;
  beforeAll(async () => {
    nats = await startTestNats();
    database = await openTestDatabase('postgres');
    receiver = await startReceiver();
    // A node whose batch is late, on a machine that stands still, is waited for.
    rig = createNotifierRig(database, { ...quickSchedule, gapPatienceMs: 20_000 });
  });
  afterEach(async () => {
    await rig.stop();
    await database.clear();
    receiver.received.length = 0;
  });
  afterAll(async () => {
    await receiver.close();
    await nats.stop();
    await database.remove();
  });

  async function newStreams(): Promise<EventConnection> {
    const connection = await nats.connect();
    await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
    return connection;
  }

  async function consume(connection: EventConnection, node: TestNode, afterHandling = () => {}) {
    return await startEventConsumer(connection, {
      name: 'notifier',
      maxBatch: 100,
      logger,
      handle: async (events) => {
        await node.handleOlder(events);
        afterHandling();
      },
    });
  }

  async function expectEachOnceInOrder(calls: readonly ReturnType<NotifierRig['call']>[]) {
    for (const call of calls) {
      const bodies = await receiver.untilEnded(call.identity.callId);
      expect(glance(bodies)).toEqual([
        'Answered',
        'amd_human_detected',
        'amd_stopped',
        'completed',
      ]);
    }
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
    expect(receiver.received).toHaveLength(calls.length * 4);
  }

  test('many calls at once: each notification once, each call in order', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const consumer = await consume(connection, await rig.start());
    const calls = Array.from({ length: 100 }, () => rig.call(receiver.url));

    await Promise.all(
      calls.flatMap((call) => personCall(call).map((event) => publisher.publish([event]))),
    );

    await expectEachOnceInOrder(calls);
    await consumer.stop();
    await publisher.stop(1_000);
  });

  test('events that come again, because they were stored but not acknowledged, are not sent again', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    let failures = 3;
    const consumer = await consume(connection, await rig.start(), () => {
      if (failures-- > 0) throw new Error('died between the row and the acknowledgement');
    });
    const calls = Array.from({ length: 10 }, () => rig.call(receiver.url));

    await Promise.all(
      calls.flatMap((call) => personCall(call).map((event) => publisher.publish([event]))),
    );

    await expectEachOnceInOrder(calls);
    await eventually(async () => {
      const info = await connection.manager.consumers.info(
        `${connection.prefix}_calls`,
        `${connection.prefix}_notifier`,
      );
      return info.num_ack_pending === 0 && info.num_pending === 0;
    }, 'everything is acknowledged');
    expect(receiver.received).toHaveLength(40);
    await consumer.stop();
    await publisher.stop(1_000);
  });

  test('two nodes on one consumer keep the order of each call', async () => {
    const connection = await newStreams();
    const publisher = createPublisher(connection, logger);
    const consumers = [
      await consume(connection, await rig.start({ nodeId: 'a' })),
      await consume(connection, await rig.start({ nodeId: 'b' })),
    ];
    const calls = Array.from({ length: 50 }, () => rig.call(receiver.url));

    await Promise.all(
      calls.flatMap((call) => personCall(call).map((event) => publisher.publish([event]))),
    );

    await expectEachOnceInOrder(calls);
    for (const consumer of consumers) await consumer.stop();
    await publisher.stop(1_000);
  });
});
