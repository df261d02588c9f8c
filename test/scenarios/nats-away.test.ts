// A gateway that starts while its NATS servers are down. It takes calls and sends notifications.
// Once the servers are up, it publishes every event in order.

import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { run } from '../cli/support.ts';
import { eventsOnStream } from '../faults/stream-dump.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { type NatsCluster, startNatsCluster } from '../support/nats-cluster.ts';
import { startReceiver } from '../support/receiver.ts';

type Ready = { readonly status: string; readonly degraded?: readonly string[] };

const types = ['queued', 'dialing', 'failed'];

describe('a gateway that starts without NATS', { concurrent: true, timeout: 60_000 }, () => {
  test('works, and publishes the events of its calls once NATS is up', async () => {
    await using world = await build({ servers: 1, isStarted: false });
    const { gateway, nats } = world;
    expect(await readinessOf(gateway)).toMatchObject({ status: 'ready', degraded: ['NATS'] });
    expect(gateway.output()).toContain('the gateway starts without it');

    const callIds = [await world.callBusyNumber(), await world.callBusyNumber()];
    await nats.nodes[0]?.start();

    for (const callId of callIds) {
      await eventually(async () => (await typesOn(nats, callId)).length === 3, 'the events');
      expect(await typesOn(nats, callId)).toEqual(types);
    }
    await eventually(
      async () => (await consumersOf(nats)).length === 3,
      'the consumers of published resources start',
    );
    await eventually(
      async () => (await readinessOf(gateway)).degraded === undefined,
      'the gateway is no longer degraded',
    );

    // NATS loses everything, as if its disk had been replaced.
    await nats.nodes[0]?.kill();
    await nats.nodes[0]?.wipe();
    await nats.nodes[0]?.start();
    for (const callId of callIds) {
      await eventually(
        async () => (await typesOn(nats, callId)).length === 3,
        'the gateway publishes the lost events again',
        30_000,
      );
      expect(await typesOn(nats, callId)).toEqual(types);
    }
    const { out } = await run('cli', ['events', 'repair', '--dry-run'], {
      ...{ DATA_DIR: gateway.dataDir, NATS_URL: nats.url },
    }).finished;
    expect(out).toBe('6 published events of 2 calls compared; 0 are missing\n');
  });

  test('finds what NATS lost with the only process that knew of it', async () => {
    await using world = await build({ servers: 1 });
    const { nats } = world;
    const [node] = nats.nodes;
    const { callId } = await world.gateway.dialer.dial({
      ...{ target: 'tel:+12025550102', machineDetection: 'detect', notifyurl: world.receiver.url },
    });
    const before = ['queued', 'dialing', 'ringing', 'answered', 'amd'];
    await eventually(
      async () => (await typesOn(nats, callId)).includes('amd'),
      'the call has published its verdict',
      30_000,
    );

    // A power cut, after which NATS lacks the last messages that it acknowledged.
    await world.gateway.kill();
    const lost = (await typesOn(nats, callId)).length - before.indexOf('ringing');
    await loseLast(nats, lost);
    await node?.kill();
    await node?.start();
    expect(await typesOn(nats, callId)).toEqual(before.slice(0, 2));
    const gateway = await startGateway(world.dataDir, { NATS_URL: nats.url });
    try {
      await eventually(
        async () => {
          const types = await typesOn(nats, callId);
          return [...before, 'completed'].every((type) => types.includes(type));
        },
        'every event is on the stream',
        30_000,
      );
    } finally {
      await gateway.terminate();
    }
  });

  test('says which stream is away, and creates it with three replicas once it can', async () => {
    await using cluster = await startNatsCluster();
    const [first, ...others] = cluster.nodes;
    await Promise.all(others.map((node) => node.kill()));
    await using world = await build(cluster);
    const { gateway } = world;
    expect(await readinessOf(gateway)).toMatchObject({ status: 'ready', degraded: ['NATS'] });
    expect(gateway.output()).toMatch(/"stream":"offhook_calls".*"a stream cannot be used"/);

    const callId = await world.callBusyNumber();
    await Promise.all(others.map((node) => node.start()));

    await eventually(
      async () => (await typesOn(cluster, callId)).length === 3,
      'the events are published',
      30_000,
    );
    expect(await typesOn(cluster, callId)).toEqual(types);
    await eventually(
      async () => (await readinessOf(gateway)).degraded === undefined,
      'every stream can be used',
      30_000,
    );
    const nats = await clientOf(first?.url ?? '');
    const { streams } = await jetstreamManager(nats);
    for await (const { config } of streams.list()) expect(config.num_replicas).toBe(3);
    await nats.close();
  });
});

async function build(nats: NatsCluster | NonNullable<Parameters<typeof startNatsCluster>[0]>) {
  const cluster = 'url' in nats ? nats : await startNatsCluster(nats);
  const dataDir = await makeSeededDataDir();
  const receiver = await startReceiver();
  const gateway = await startGateway(dataDir.path, { NATS_URL: cluster.url });
  return {
    ...{ gateway, receiver, nats: cluster, dataDir: dataDir.path },
    /** Resolves once the call has ended and the receiver knows. */
    async callBusyNumber(): Promise<string> {
      const { callId } = await gateway.dialer.dial({
        target: 'tel:+12025550130',
        notifyurl: receiver.url,
      });
      await receiver.untilEnded(callId);
      return callId;
    },
    [Symbol.asyncDispose]: async () => {
      await gateway.terminate();
      await receiver.close();
      await dataDir.remove();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

async function readinessOf({ runtime }: GatewayProcess): Promise<Ready> {
  return (await (await fetch(`${runtime.httpUrl}/ready`)).json()) as Ready;
}

async function typesOn({ nodes }: NatsCluster, callId: string): Promise<readonly string[]> {
  const url = nodes[0]?.url ?? '';
  const events = await eventsOnStream(url).catch(() => []);
  return events.filter(({ event }) => event.callId === callId).map(({ event }) => event.type);
}

/** Removes the last messages of the calls stream. Its server must be restarted afterwards. */
async function loseLast({ nodes }: NatsCluster, count: number): Promise<void> {
  const nats = await clientOf(nodes[0]?.url ?? '');
  const { streams } = await jetstreamManager(nats);
  const { state } = await streams.info('offhook_calls');
  for (let at = 0; at < count; at += 1) {
    await streams.deleteMessage('offhook_calls', state.last_seq - at);
  }
  await nats.close();
}

async function consumersOf({ nodes }: NatsCluster): Promise<readonly string[]> {
  const nats = await clientOf(nodes[0]?.url ?? '');
  try {
    const { consumers } = await jetstreamManager(nats);
    return await consumers
      .list('offhook_ingest')
      .next()
      .then((page) => page.map(({ name }) => name));
  } finally {
    await nats.close();
  }
}

async function clientOf(text: string) {
  const { host, username, password } = new URL(text);
  return await connect({ servers: host, user: username, pass: password });
}
