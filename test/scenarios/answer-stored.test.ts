// An answer is stored before the 200 OK is acknowledged, within four seconds. What becomes of the call where the database does not
// say in time that it was: the phone is hung up, and the caller is told what the database holds.

import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { appendStatement } from '../../src/store/outbox/append-statement.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { type FarCall, numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { glance } from '../support/receiver.ts';
import { layDatabaseWire, through, type Wire } from '../support/wire.ts';

describe('an answer', () => {
  let database: TestDatabase;
  let databaseUrl: string;
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let wire: Wire;
  let calls = 0;
  beforeAll(async () => {
    database = await openTestDatabase('postgres');
    databaseUrl = database.location.databaseUrl ?? '';
    cluster = await startCluster({ databaseUrl });
    wire = await layDatabaseWire(databaseUrl);
    gateway = await cluster.startNode('a', { DATABASE_URL: through(databaseUrl, wire) });
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await wire.close();
    await database.remove();
  });

  /** A phone that rings for a second and a half, long enough for the ring to be stored. */
  async function ringing(): Promise<{ readonly callId: string; readonly phone: FarCall }> {
    calls += 1;
    const number = numberFor('late-stay', 15, calls);
    const { callId } = await gateway.dialer.dial({
      target: `tel:+${number}`,
      notifyurl: cluster.receiver.url,
    });
    const find = () => cluster.farEnd.calls.find((call) => call.number === number);
    await eventually(() => find()?.rangAt !== undefined, 'it rings');
    await eventually(async () => (await stateOf(callId)) === 'ringing', 'the ring is stored');
    const phone = find();
    if (phone === undefined) throw new Error('no phone');
    return { callId, phone };
  }

  async function stateOf(callId: string): Promise<string | undefined> {
    const { rows } = await database.pool.query<{ state: string }>(
      'select state from calls where call_id = $1',
      [callId],
    );
    return rows[0]?.state;
  }

  const isHungUp = (phone: FarCall) => () => phone.endedAt !== undefined;

  async function expectFailed(callId: string): Promise<void> {
    const bodies = await cluster.receiver.untilEnded(callId);
    expect(glance(bodies)).toEqual(['Failed']);
    expect(bodies[0]).toMatchObject({ sequence: 1, reason: 'The answer could not be recorded' });
  }

  async function expectAnswered(callId: string): Promise<void> {
    const bodies = await cluster.receiver.untilEnded(callId);
    expect(glance(bodies)).toEqual(['Answered', 'completed']);
    expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(bodies[1]).toMatchObject({ reasonCode: 'Gateway-disconnected' });
  }

  test('that never left for the database: the call failed', async () => {
    const { callId, phone } = await ringing();
    wire.cut();
    await eventually(isHungUp(phone), 'the phone is hung up', 15_000);
    expect(await stateOf(callId)).toBe('ringing');
    wire.heal();

    await expectFailed(callId);
  }, 40_000);

  test('that is stored, though the database’s reply is lost: the call was answered', async () => {
    const { callId, phone } = await ringing();
    wire.muteSenderOf(appendStatement.name);
    await eventually(isHungUp(phone), 'the phone is hung up', 15_000);
    expect(await stateOf(callId)).toBe('answered');
    wire.heal();

    await expectAnswered(callId);
  }, 40_000);

  test('that is stored later than that: the call was answered', async () => {
    const { callId, phone } = await ringing();
    const holder = new Client({ connectionString: databaseUrl });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from calls where call_id = $1 for update', [callId]);
    await eventually(isHungUp(phone), 'the phone is hung up', 15_000);
    await holder.query('commit');
    await holder.end();

    await expectAnswered(callId);
  }, 40_000);
});
