// The streams on real nats-servers: a cluster of three, and a server with a tiny store.

import { describe, expect, onTestFinished, test } from 'vitest';
import { connectEvents, type EventConnection } from '../../src/events/connection.ts';
import { createPublisher } from '../../src/events/publisher.ts';
import { StreamKeeper } from '../../src/events/stream-keeper.ts';
import type { StreamSettings } from '../../src/events/streams.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventBuilder } from '../support/call-events.ts';
import { eventually } from '../support/eventually.ts';
import { startNatsCluster } from '../support/nats-cluster.ts';
import { forSuite } from '../support/opened.ts';

const minuteMs = 60_000;
const settings: StreamSettings = { eventDays: 1, contextHours: 1 };

async function connected(url: string, prefix: string): Promise<EventConnection> {
  const connection = await connectEvents({ url, prefix, name: 'test', logger });
  onTestFinished(() => connection.close());
  return connection;
}

async function keep(connection: EventConnection, more: Partial<StreamSettings> = {}) {
  const keeper = new StreamKeeper({
    ...{ connection, logger, isAlone: false, onLost: () => undefined },
    settings: { ...settings, ...more },
  });
  onTestFinished(() => keeper.stop());
  await keeper.start();
}

async function replicasOf({ manager }: EventConnection, prefix: string) {
  const replicas = new Map<string, number>();
  for await (const { config } of manager.streams.list()) {
    if (config.name.includes(prefix)) replicas.set(config.name, config.num_replicas);
  }
  return replicas;
}

describe('in a cluster', () => {
  const cluster = forSuite(() => startNatsCluster());

  test('every new stream and bucket has three replicas', async () => {
    const connection = await connected(cluster.url, 'three');

    await keep(connection);

    const replicas = await replicasOf(connection, 'three');
    expect(replicas.size).toBe(6);
    expect(new Set(replicas.values())).toEqual(new Set([3]));
  });

  test('an existing stream with fewer replicas is named and stays as it is', async () => {
    const connection = await connected(cluster.url, 'few');
    await keep(connection, { replicas: 1 });

    await keep(connection);

    expect(connection.status().streamsWithFewerReplicas).toContainEqual({
      ...{ stream: 'few_calls', replicas: 1, wanted: 3 },
    });
    expect((await replicasOf(connection, 'few')).get('few_calls')).toBe(1);
  });
});

describe('on a server with a tiny store', () => {
  const nats = forSuite(() => startNatsCluster({ servers: 1, maxFileStoreBytes: 150_000_000 }));

  test.each([
    [{ replicas: 3 }, /^NATS_REPLICAS is 3, but the NATS server does not belong to a cluster$/],
    [{ maxBytes: 150_000_000 }, /lower NATS_MAX_BYTES or raise the server's max_file_store/],
  ])('%o is a mistake', async (more, problem) => {
    const connection = await connected(nats.url, `mistaken${Object.keys(more).join()}`);

    await expect(keep(connection, more)).rejects.toThrow(problem);
  });

  test('a full store is reported with its reason, and events go on once there is room', async () => {
    await using full = await startNatsCluster({ servers: 1, maxFileStoreBytes: 140_000_000 });
    const connection = await connected(full.url, 'full');
    await keep(connection);
    const { streams } = connection.manager;
    await streams.add({ name: 'filler', subjects: ['filler'] });
    const filling = 'x'.repeat(900_000);
    let isFull = false;
    for (let count = 0; count < 200 && !isFull; count += 1) {
      isFull = await connection.put('filler', filling).then(
        () => false,
        () => true,
      );
    }
    expect(isFull).toBe(true);
    const publisher = createPublisher(connection, logger);
    const published = publisher.publish([eventBuilder().failed()]);
    await eventually(() => publisher.backlog().failure !== undefined, 'the event fails');
    expect(publisher.backlog().waitingEvents).toBe(1);
    expect(publisher.backlog().failure).toMatch(/insufficient/);

    await streams.delete('filler');
    await published;
    expect(publisher.backlog()).toEqual({ waitingEvents: 0, oldestWaitingMs: 0 });
    await publisher.stop(1_000);
  });

  test('events that had waited for long may be among the lost ones', async () => {
    await using lossy = await startNatsCluster({ servers: 1 });
    const connection = await connected(lossy.url, 'lossy');
    const lost: Date[] = [];
    const keeper = new StreamKeeper({
      ...{ connection, logger, settings, isAlone: false },
      onLost: (since) => lost.push(since),
      oldestWaitingMs: () => 20 * minuteMs,
    });
    onTestFinished(() => keeper.stop());
    const startedAtMs = Date.now();
    await keeper.start();
    const publisher = createPublisher(connection, logger);
    await publisher.publish([eventBuilder().failed()]);
    const [node] = lossy.nodes;
    await node?.kill();
    await node?.wipe();
    await node?.start();

    await eventually(() => lost.length > 0, 'the loss is noticed');
    expect(lost[0]?.getTime()).toBeGreaterThanOrEqual(startedAtMs - 25 * minuteMs);
    expect(lost[0]?.getTime()).toBeLessThan(Date.now() - 24 * minuteMs);
    expect(connection.acknowledged('lossy_calls')).toEqual({ sequence: 0 });
    await publisher.stop(1_000);
  });

  test('NATS_MAX_BYTES removes the oldest events first', async () => {
    await using small = await startNatsCluster({ servers: 1, maxFileStoreBytes: 140_000_000 });
    const connection = await connected(small.url, 'bounded');
    await keep(connection, { maxBytes: 20_000 });
    const publisher = createPublisher(connection, logger);

    for (let count = 0; count < 100; count += 1) {
      await publisher.publish([eventBuilder().failed()]);
    }

    const { state } = await connection.manager.streams.info('bounded_calls');
    expect(state.last_seq).toBe(100);
    expect(state.first_seq).toBeGreaterThan(1);
    expect(state.bytes).toBeLessThanOrEqual(20_000);
    await publisher.stop(1_000);
  });
});
