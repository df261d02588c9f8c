// Several nodes on one database, one NATS and one SIP engine. The limits of a trunk hold over all
// nodes, and another node ends the calls of a lost node.

import { describe, expect, onTestFinished, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { isTerminal } from '../support/receiver.ts';
import { layDatabaseWire, through } from '../support/wire.ts';

/**
 * The lease of a node that a test stops until the lease expires. It is longer than a busy machine
 * stands still, and short enough to wait for.
 */
const shortLease = { NODE_LEASE_MS: '6000' };
/** Number of notifications that one node sends to one receiver concurrently. */
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

/** Ends the lease of a killed node. */
async function endLease({ database }: World, node: string): Promise<void> {
  await database.pool.query(
    `update nodes set lease_until = now() - interval '1 second' where node_id = $1`,
    [node],
  );
}

/**
 * Lets the node `late` be late for this long, during which the node `watching` has renewed its
 * lease without a gap.
 */
async function makeLate({ database }: World, late: string, watching: string, seconds: number) {
  await database.pool.query(
    `update nodes set
       lease_until = case when node_id = $1 then now() - $3 * interval '1 second' else lease_until end,
       steady_since = case when node_id = $2 then now() - $3 * interval '1 second' else steady_since end
     where lost_at is null`,
    [late, watching, seconds],
  );
}

/** Starts a node whose path to the database the test can cut. */
async function startCuttable({ cluster, database }: World, name: string) {
  const databaseUrl = database.location.databaseUrl ?? '';
  const wire = await layDatabaseWire(databaseUrl);
  onTestFinished(() => wire.close());
  const node = await cluster.startNode(name, {
    DATABASE_URL: through(databaseUrl, wire),
    // The test waits until this lease has expired.
    NODE_LEASE_MS: '2000',
  });
  return { wire, node };
}

async function callsOf({ database }: World, node: string): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ call_id: string }>(
    `select call_id from calls where coalesce(previous_owner_id, owner_id) like $1`,
    [`${node}/%`],
  );
  return rows.map((row) => row.call_id);
}

/**
 * Expects the notifications of each call from the first to its only end, in order, whichever node
 * sent them.
 */
function expectWhole(cluster: Cluster, calls: readonly Dialled[]): void {
  for (const { callId } of calls) {
    const notified = cluster.receiver.of(callId);
    const byId = new Map(notified.map((body) => [body.eventId, body]));
    const sequences = [...byId.values()].map((body) => body.sequence).sort((a, b) => a - b);
    expect(sequences).toEqual(sequences.map((_, index) => index + 1));
    expect([...byId.values()].filter(isTerminal)).toHaveLength(1);
    for (const body of notified) expect(body).toEqual(byId.get(body.eventId));
  }
}

describe('a cluster', () => {
  test('applies the limits of a trunk over all nodes, and uses all that they allow', async () => {
    await using world = await build(['callsPerSecond: 20', 'maxConcurrentCalls: 10']);
    const { cluster } = world;
    const nodes = await Promise.all(['a', 'b', 'c'].map((name) => cluster.startNode(name)));
    const calls = await dial(cluster, nodes, many(60, 'talk', 3));
    await eventually(
      () => calls.every(({ callId }) => cluster.receiver.of(callId).some(isTerminal)),
      'all calls have ended',
      45_000,
    );

    const { farEnd } = cluster;
    expect(farEnd.calls).toHaveLength(60);
    expect(new Set(farEnd.calls.map((call) => call.number)).size).toBe(60);
    expect(farEnd.mostUp).toBeLessThanOrEqual(10);
    expectWhole(cluster, calls);
    // A slot is released after the end of the call is notified.
    const slots = () => world.database.pool.query('select from trunk_slots');
    await eventually(
      async () => (await slots()).rowCount === 0,
      'every slot of the trunk is released',
    );
  }, 180_000);

  test('ends the calls of a killed node at both ends, and notifies each end once', async () => {
    await using world = await build();
    const { cluster } = world;
    const [dying, living] = [await cluster.startNode('a'), await cluster.startNode('b')];
    const calls = await dial(cluster, [dying, living], many(60, 'stay', 0));
    await eventually(
      () => calls.every(({ callId }) => cluster.receiver.of(callId).length > 0),
      'all calls are up and their answers are notified',
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
      'the ends of the killed node’s calls are notified',
    );
    const lostNumbers = new Set(lost.map(({ number }) => number));
    await eventually(
      () =>
        cluster.farEnd.calls
          .filter((call) => lostNumbers.has(call.number))
          .every((call) => call.endedAt !== undefined),
      'the phones of these calls are hung up',
    );

    for (const { callId } of lost) {
      expect(cluster.receiver.of(callId).find(isTerminal)).toMatchObject({
        status: 'completed',
        reason: 'Gateway lost; another node ended the call',
        reasonCode: 'Gateway-disconnected',
      });
    }
    // The calls of the other node are not affected.
    expect(cluster.farEnd.up).toBe(calls.length - lost.length);
    expect(cluster.farEnd.calls).toHaveLength(calls.length);
    expectWhole(cluster, lost);
  }, 180_000);

  test('a node that is cut off from the database keeps its calls while it answers, and loses them when it is gone', async () => {
    await using world = await build();
    const { cluster } = world;
    const [{ wire, node: late }, living] = [
      await startCuttable(world, 'a'),
      await cluster.startNode('b'),
    ];
    const calls = await dial(cluster, [late, living], many(8, 'stay', 0));
    await eventually(
      () => cluster.farEnd.calls.filter((c) => c.acknowledgedAt !== undefined).length === 8,
      'all calls are up',
    );
    const lost = await callsOf(world, 'a');
    wire.cut();
    await makeLate(world, 'a', 'b', 240);
    await eventually(
      () => living.output().includes('it answers and keeps its calls'),
      'the living node has asked the late one',
    );
    const renewedAt = () =>
      world.database.pool.query<{ text: string }>(
        `select renewed_at::text as text from nodes where node_id = 'b'`,
      );
    // Between two renewals, the living node looks for late nodes again.
    for (let renewals = 0; renewals < 2; renewals += 1) {
      const before = (await renewedAt()).rows[0]?.text;
      await eventually(async () => (await renewedAt()).rows[0]?.text !== before, 'a renewal');
    }
    const marked = await world.database.pool.query('select from nodes where lost_at is not null');
    expect(marked.rowCount).toBe(0);
    expect(cluster.farEnd.up).toBe(8);

    // A node with another owner id listens at the same address.
    await late.kill();
    await cluster.startNode('c', { HTTP_PORT: new URL(late.runtime.httpUrl).port });
    await makeLate(world, 'a', 'b', 240);
    await eventually(
      () => lost.every((callId) => cluster.receiver.of(callId).some(isTerminal)),
      'the ends of its calls are notified',
    );
    expect(lost.length).toBeGreaterThan(0);
    await eventually(() => cluster.farEnd.up === 8 - lost.length, 'their phones are hung up');
    expectWhole(
      cluster,
      calls.filter(({ callId }) => lost.includes(callId)),
    );
  }, 180_000);

  test('a node that answers but cannot renew for five minutes hangs up its calls, and another node ends them', async () => {
    await using world = await build();
    const { cluster } = world;
    const { wire, node: late } = await startCuttable(world, 'a');
    const calls = await dial(cluster, [late], many(4, 'stay', 0));
    await eventually(
      () => cluster.farEnd.calls.filter((c) => c.acknowledgedAt !== undefined).length === 4,
      'all calls are up',
    );
    const living = await cluster.startNode('b');
    wire.cut();
    const isLate = () =>
      world.database.pool.query(`select from nodes where node_id = 'a' and lease_until < now()`);
    await eventually(async () => (await isLate()).rowCount === 1, 'its lease has expired');
    expect(cluster.farEnd.up).toBe(4);
    await makeLate(world, 'a', 'b', 301);

    await eventually(() => late.child.exitCode !== null, 'the late node has exited');
    expect(late.child.exitCode).toBe(1);
    expect(cluster.farEnd.up).toBe(0);
    expect(living.output()).toContain('it hangs up');
    await eventually(
      () => calls.every(({ callId }) => cluster.receiver.of(callId).some(isTerminal)),
      'the ends of its calls are notified',
    );
    expectWhole(cluster, calls);
  }, 180_000);

  test('a node that wakes up after its lease expired does no harm, and exits', async () => {
    await using world = await build();
    const { cluster } = world;
    const sleeper = await cluster.startNode('a', shortLease);
    const living = await cluster.startNode('b');
    const numbers = [...many(10, 'stay', 0), ...many(10, 'late', 60)];
    const calls = await dial(cluster, [sleeper, living], numbers);
    await eventually(() => cluster.farEnd.calls.length === 20, 'all phones ring or are up');
    sleeper.child.kill('SIGSTOP');
    await untilLost(world);
    const lost = await callsOf(world, 'a');
    await eventually(
      () => lost.every((callId) => cluster.receiver.of(callId).some(isTerminal)),
      'the ends of its calls are notified',
    );
    const receivedBefore = cluster.receiver.received.length;
    sleeper.child.kill('SIGCONT');
    await eventually(() => sleeper.child.exitCode !== null, 'the node that woke up exits');

    expect(sleeper.child.exitCode).toBe(1);
    expect(lost.length).toBeGreaterThan(0);
    const later = cluster.receiver.received.slice(receivedBefore).map(({ body }) => body.callId);
    expect(later.filter((callId) => lost.includes(callId))).toEqual([]);
    const lostNumbers = calls.filter(({ callId }) => lost.includes(callId)).map((c) => c.number);
    await eventually(
      () =>
        cluster.farEnd.calls
          .filter((call) => lostNumbers.includes(call.number))
          .every((call) => call.endedAt !== undefined),
      'no phone of the lost calls is left in a call',
    );
    expect(cluster.farEnd.calls).toHaveLength(20);
    expectWhole(
      cluster,
      calls.filter(({ callId }) => lost.includes(callId)),
    );
  }, 180_000);

  test('a node that wakes up with notifications in memory sends none of those that another node took over', async () => {
    await using world = await build();
    const { cluster } = world;
    const { receiver } = cluster;
    // The receiver does not answer yet, so the later notifications wait in the memory of both
    // nodes.
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
    // Start with one node: any node may take a call, so two nodes would not share the calls evenly.
    const sleeper = await cluster.startNode('a', shortLease);
    const first = await dial(cluster, [sleeper], numbers.slice(0, 60));
    await eventually(
      () => arrived >= sendsAtOnce,
      'the first node sends as many notifications as it may',
    );
    const living = await cluster.startNode('b');
    const second = await dial(cluster, [sleeper, living], numbers.slice(60));
    const calls = [...first, ...second];
    const answered = () => world.database.pool.query(`select from calls where state = 'answered'`);
    await eventually(async () => (await answered()).rowCount === calls.length, 'all are answered');
    const callsOfSecondNode = (await callsOf(world, 'b')).length;
    await eventually(
      () => arrived >= sendsAtOnce + Math.min(sendsAtOnce, callsOfSecondNode),
      'both nodes send as many notifications as they may',
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
      'the other node has sent the notifications in its memory',
    );

    const sent = new Set(receiver.received.map(({ body }) => body.eventId));
    const before = receiver.received.length;
    sleeper.child.kill('SIGCONT');
    await eventually(() => sleeper.child.exitCode !== null, 'the node that woke up exits');

    const later = receiver.received.slice(before).map(({ body }) => body.eventId);
    expect(later.filter((eventId) => sent.has(eventId))).toEqual([]);
    await eventually(
      () => lost.every((callId) => receiver.of(callId).some(isTerminal)),
      'the ends of its calls are notified',
    );
    expectWhole(
      cluster,
      calls.filter(({ callId }) => lost.includes(callId)),
    );
  }, 180_000);

  test('another node sends all selected events that a killed node owed, and the end last', async () => {
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
      'the first event of each call is notified',
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
      const notified = bodies.map(({ status, event }) =>
        status === 'Event' ? (event as { readonly type: string }).type : status,
      );
      expect(notified).toEqual(['queued', 'dialing', 'ringing', 'Answered', 'completed']);
      expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    }
  }, 180_000);

  test('any node ends a call when asked', async () => {
    await using world = await build();
    const { cluster } = world;
    const nodes = [await cluster.startNode('a'), await cluster.startNode('b')] as const;
    const calls = await dial(cluster, nodes, many(8, 'stay', 0));
    await eventually(
      () =>
        cluster.farEnd.calls.every((c) => c.acknowledgedAt !== undefined) &&
        cluster.farEnd.calls.length === 8,
      'all calls are up',
    );

    const answers = await Promise.all(
      calls.map(({ callId }) =>
        nodes[0].dialer.request('DELETE', `/api/public/bot/bot-1/calls/${callId}`),
      ),
    );
    expect(answers.map((answer) => answer.status)).toEqual(calls.map(() => 200));
    await eventually(() => cluster.farEnd.up === 0, 'all phones are hung up');
    for (const { callId } of calls) {
      const bodies = await cluster.receiver.untilEnded(callId);
      expect(bodies.find(isTerminal)).toMatchObject({ reasonCode: 'Bot-disconnected' });
    }
  }, 180_000);
});
