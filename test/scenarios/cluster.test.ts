// Several nodes on one database, one NATS and one SIP engine: a trunk's limits hold over all of them, and what one node
// loses another one ends.

import { describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { isTerminal } from '../support/receiver.ts';

/** Of one that is stopped until it is over: longer than a machine stands still, and short enough to be waited for. */
const shortLease = { NODE_LEASE_MS: '6000' };
/** Of one node to one receiver. */
const sendsAtOnce = 32;

async function build(trunk: readonly string[] = []) {
  const database = await openTestDatabase('postgres');
  const cluster = await startCluster({
    databaseUrl: database.location.databaseUrl ?? '',
    trunk,
  });
  return {
    cluster,
    database,
    [Symbol.asyncDispose]: async () => {
      await cluster[Symbol.asyncDispose]();
      await database.remove();
    },
  };
}

type Dialled = { readonly callId: string; readonly number: string };

async function dial(
  cluster: Cluster,
  nodes: readonly GatewayProcess[],
  numbers: readonly string[],
  more: object = {},
): Promise<readonly Dialled[]> {
  return await Promise.all(
    numbers.map(async (number, index) => {
      const node = nodes[index % nodes.length];
      if (node === undefined) throw new Error('no node');
      const target = `tel:+${number}`;
      const { callId } = await node.dialer.dial({
        target,
        notifyurl: cluster.receiver.url,
        ...more,
      });
      return { callId, number };
    }),
  );
}

const many = (count: number, ...behaviour: readonly [Parameters<typeof numberFor>[0], number]) =>
  Array.from({ length: count }, (_, index) => numberFor(...behaviour, index));

type World = Awaited<ReturnType<typeof build>>;

async function untilLost({ database }: World): Promise<void> {
  const lost = () => database.pool.query('select from nodes where lost_at is not null');
  await eventually(async () => (await lost()).rowCount === 1, 'the node is lost', 30_000);
}

/** The time of a killed one is over. */
async function endLease({ database }: World, node: string): Promise<void> {
  await database.pool.query(
    `update nodes set lease_until = now() - interval '1 second' where node_id = $1`,
    [node],
  );
}

async function callsOf({ database }: World, node: string): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ call_id: string }>(
    `select call_id from calls where coalesce(previous_owner_id, owner_id) like $1`,
    [`${node}/%`],
  );
  return rows.map((row) => row.call_id);
}

/** Each call told from its first to its one end, in order, whichever node told it. */
function expectWhole(cluster: Cluster, calls: readonly Dialled[]): void {
  for (const { callId } of calls) {
    const told = cluster.receiver.of(callId);
    const byId = new Map(told.map((body) => [body.eventId, body]));
    const sequences = [...byId.values()].map((body) => body.sequence).sort((a, b) => a - b);
    expect(sequences).toEqual(sequences.map((_, index) => index + 1));
    expect([...byId.values()].filter(isTerminal)).toHaveLength(1);
    for (const body of told) expect(body).toEqual(byId.get(body.eventId));
  }
}

describe('a cluster', () => {
  test('holds a trunk to its limits over all nodes, and uses what it allows', async () => {
    await using world = await build(['callsPerSecond: 20', 'maxConcurrentCalls: 10']);
    const { cluster } = world;
    const nodes = await Promise.all(['a', 'b', 'c'].map((name) => cluster.startNode(name)));
    const calls = await dial(cluster, nodes, many(60, 'talk', 3));
    await eventually(
      () => calls.every(({ callId }) => cluster.receiver.of(callId).some(isTerminal)),
      'all calls are over',
      45_000,
    );

    const { farEnd } = cluster;
    expect(farEnd.calls).toHaveLength(60);
    expect(new Set(farEnd.calls.map((call) => call.number)).size).toBe(60);
    expect(farEnd.mostUp).toBeLessThanOrEqual(10);
    expectWhole(cluster, calls);
    // A slot is given back when the call's end is told already.
    const slots = () => world.database.pool.query('select from trunk_slots');
    await eventually(async () => (await slots()).rowCount === 0, 'every slot is given back');
  }, 180_000);

  test('ends the calls of a node that was killed, at both ends, and says so once', async () => {
    await using world = await build();
    const { cluster } = world;
    const [dying, living] = [await cluster.startNode('a'), await cluster.startNode('b')];
    const calls = await dial(cluster, [dying, living], many(60, 'stay', 0));
    await eventually(
      () => calls.every(({ callId }) => cluster.receiver.of(callId).length > 0),
      'all are up and told',
    );
    const owners = await world.database.pool.query<{ call_id: string; owner_id: string }>(
      'select call_id, owner_id from calls',
    );
    const isLost = new Set(
      owners.rows.filter((row) => row.owner_id.startsWith('a/')).map((row) => row.call_id),
    );
    expect(isLost.size).toBeGreaterThan(0);

    await dying.kill();
    await endLease(world, 'a');
    const lost = calls.filter(({ callId }) => isLost.has(callId));
    await eventually(
      () => lost.every(({ callId }) => cluster.receiver.of(callId).some(isTerminal)),
      'the calls of the killed node are told to be over',
    );
    const lostNumbers = new Set(lost.map(({ number }) => number));
    await eventually(
      () =>
        cluster.farEnd.calls
          .filter((call) => lostNumbers.has(call.number))
          .every((call) => call.endedAt !== undefined),
      'their phones are hung up',
    );

    for (const { callId } of lost) {
      expect(cluster.receiver.of(callId).find(isTerminal)).toMatchObject({
        status: 'completed',
        reason: 'Gateway lost; another node ended the call',
        reasonCode: 'Gateway-disconnected',
      });
    }
    // The other node's calls are none of this.
    expect(cluster.farEnd.up).toBe(calls.length - lost.length);
    expect(cluster.farEnd.calls).toHaveLength(calls.length);
    expectWhole(cluster, lost);
  }, 180_000);

  test('a node that was stopped for longer than its lease and wakes up does no harm, and ends itself', async () => {
    await using world = await build();
    const { cluster } = world;
    const sleeper = await cluster.startNode('a', shortLease);
    const living = await cluster.startNode('b');
    const numbers = [...many(10, 'stay', 0), ...many(10, 'late', 60)];
    const calls = await dial(cluster, [sleeper, living], numbers);
    await eventually(() => cluster.farEnd.calls.length === 20, 'all ring or are up');
    sleeper.child.kill('SIGSTOP');
    await untilLost(world);
    const lost = await callsOf(world, 'a');
    await eventually(
      () => lost.every((callId) => cluster.receiver.of(callId).some(isTerminal)),
      'its calls are told to be over',
    );
    const told = cluster.receiver.received.length;
    sleeper.child.kill('SIGCONT');
    await eventually(() => sleeper.child.exitCode !== null, 'it ends itself');

    expect(sleeper.child.exitCode).toBe(1);
    expect(lost.length).toBeGreaterThan(0);
    const later = cluster.receiver.received.slice(told).map(({ body }) => body.callId);
    expect(later.filter((callId) => lost.includes(callId))).toEqual([]);
    const lostNumbers = calls.filter(({ callId }) => lost.includes(callId)).map((c) => c.number);
    await eventually(
      () =>
        cluster.farEnd.calls
          .filter((call) => lostNumbers.includes(call.number))
          .every((call) => call.endedAt !== undefined),
      'no phone is left in a call',
    );
    expect(cluster.farEnd.calls).toHaveLength(20);
    expectWhole(
      cluster,
      calls.filter(({ callId }) => lost.includes(callId)),
    );
  }, 180_000);

  test('a node that wakes up with notifications in memory sends none that another node has taken over', async () => {
    await using world = await build();
    const { cluster } = world;
    const { receiver } = cluster;
    // Held by their receiver, so that those after them wait for their place in the memory of both nodes.
    let arrived = 0;
    let answer: () => void = () => undefined;
    const held = new Promise<number>((resolve) => {
      answer = () => resolve(200);
    });
    receiver.answerWith(() => {
      arrived += 1;
      return held;
    });
    const numbers = many(120, 'stay', 0);
    // Alone at first: any node may take a call, so that the calls of two are not shared evenly.
    const sleeper = await cluster.startNode('a', shortLease);
    const first = await dial(cluster, [sleeper], numbers.slice(0, 60));
    await eventually(() => arrived >= sendsAtOnce, 'the first node sends as much as it may');
    const living = await cluster.startNode('b');
    const second = await dial(cluster, [sleeper, living], numbers.slice(60));
    const calls = [...first, ...second];
    const answered = () => world.database.pool.query(`select from calls where state = 'answered'`);
    await eventually(async () => (await answered()).rowCount === calls.length, 'all are answered');
    const ofLiving = (await callsOf(world, 'b')).length;
    await eventually(
      () => arrived >= sendsAtOnce + Math.min(sendsAtOnce, ofLiving),
      'both nodes send as much as they may',
    );
    sleeper.child.kill('SIGSTOP');
    await untilLost(world);
    const lost = await callsOf(world, 'a');
    answer();
    const answeredPending = () =>
      world.database.pool.query(
        `select from notifications where call_id = any($1) and sequence = 1 and state = 'pending'`,
        [lost],
      );
    await eventually(
      async () => (await answeredPending()).rowCount === 0,
      'the other node has sent what it had in memory',
    );

    const sent = new Set(receiver.received.map(({ body }) => body.eventId));
    const before = receiver.received.length;
    sleeper.child.kill('SIGCONT');
    await eventually(() => sleeper.child.exitCode !== null, 'it ends itself');

    const later = receiver.received.slice(before).map(({ body }) => body.eventId);
    expect(later.filter((eventId) => sent.has(eventId))).toEqual([]);
    await eventually(
      () => lost.every((callId) => receiver.of(callId).some(isTerminal)),
      'its calls are told to be over',
    );
    expectWhole(
      cluster,
      calls.filter(({ callId }) => lost.includes(callId)),
    );
  }, 180_000);

  test('what a killed node owed of selected events comes from another one, whole, and the end is the last', async () => {
    await using world = await build();
    const { cluster } = world;
    const { receiver } = cluster;
    let refuse: () => void = () => undefined;
    const refused = new Promise<number>((resolve) => {
      refuse = () => resolve(503);
    });
    receiver.answerWith(({ sequence }) => (sequence === 1 ? 200 : refused));
    const dying = await cluster.startNode('a');
    const notifyEvents = { notifyEvents: ['*'] };
    const calls = await dial(cluster, [dying], many(10, 'stay', 0), notifyEvents);
    const answered = () => world.database.pool.query(`select from calls where state = 'answered'`);
    await eventually(async () => (await answered()).rowCount === 10, 'all are answered');
    await eventually(
      () => calls.every(({ callId }) => receiver.of(callId).length === 1),
      'the first event of each is told',
    );
    await cluster.startNode('b');
    await dying.kill();
    refuse();
    receiver.answerWith(() => 200);
    await endLease(world, 'a');
    await eventually(
      () => calls.every(({ callId }) => receiver.of(callId).some(isTerminal)),
      'the receiver has the last notification of each call',
      30_000,
    );

    expectWhole(cluster, calls);
    for (const { callId } of calls) {
      const bodies = receiver.of(callId);
      const told = bodies.map(({ status, event }) =>
        status === 'Event' ? (event as { readonly type: string }).type : status,
      );
      expect(told).toEqual(['queued', 'dialing', 'ringing', 'Answered', 'completed']);
      expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    }
  }, 180_000);

  test('a call is ended through whichever node is asked', async () => {
    await using world = await build();
    const { cluster } = world;
    const nodes = [await cluster.startNode('a'), await cluster.startNode('b')] as const;
    const calls = await dial(cluster, nodes, many(8, 'stay', 0));
    await eventually(
      () =>
        cluster.farEnd.calls.every((c) => c.acknowledgedAt !== undefined) &&
        cluster.farEnd.calls.length === 8,
      'all are up',
    );

    const answers = await Promise.all(
      calls.map(({ callId }) =>
        nodes[0].dialer.request('DELETE', `/api/public/bot/bot-1/calls/${callId}`),
      ),
    );
    expect(answers.map((answer) => answer.status)).toEqual(calls.map(() => 200));
    await eventually(() => cluster.farEnd.up === 0, 'all are hung up');
    for (const { callId } of calls) {
      const bodies = await cluster.receiver.untilEnded(callId);
      expect(bodies.find(isTerminal)).toMatchObject({ reasonCode: 'Bot-disconnected' });
    }
  }, 180_000);
});
