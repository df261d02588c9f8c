// The gateway stores an answer before it acknowledges the 200 OK, and waits up to four seconds for
// the database. If the database does not confirm the answer in time, the gateway hangs up the phone
// and reports to the caller what the database holds.

import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { glance } from '../support/receiver.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { layDatabaseWire, through, type Wire } from '../support/wire.ts';

describe('an answer', () => {
  let databaseUrl: string;
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let wire: Wire;
  const database = forSuite(() => openTestDatabase('postgres'));
  beforeAll(async () => {
    databaseUrl = database.location.databaseUrl ?? '';
    cluster = await startCluster({ databaseUrl });
    wire = await layDatabaseWire(databaseUrl);
    gateway = await cluster.startNode('a', {
      DATABASE_URL: through(databaseUrl, wire),
      SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
    });
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await wire.close();
  });

  /**
   * Dials a phone and waits until its ringing is stored. The phone picks up when the test wants it.
   */
  async function ringing(): Promise<{ readonly callId: string; readonly phone: StreamCallee }> {
    const { callee: phone, placed } = await StreamCallee.called((target) =>
      gateway.dialer.dial({ target, notifyurl: cluster.receiver.url }),
    );
    onTestFinished(() => phone[Symbol.asyncDispose]());
    const { callId } = placed;
    phone.ring();
    await eventually(async () => (await stateOf(callId)) === 'ringing', 'the ringing is stored');
    return { callId, phone };
  }

  async function stateOf(callId: string): Promise<string | undefined> {
    const { rows } = await database.pool.query<{ state: string }>(
      'select state from calls where call_id = $1',
      [callId],
    );
    return rows[0]?.state;
  }

  async function picksUpAndIsHungUp(phone: StreamCallee): Promise<void> {
    await phone.answer();
    await phone.isHungUp();
  }

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

  test('fails the call if it was never sent to the database', async () => {
    const { callId, phone } = await ringing();
    wire.cut();
    await picksUpAndIsHungUp(phone);
    expect(await stateOf(callId)).toBe('ringing');
    wire.heal();

    await expectFailed(callId);
  });

  test('counts if it was stored but the reply of the database was lost', async () => {
    const { callId, phone } = await ringing();
    wire.muteSenderOf('append to calls of ');
    await picksUpAndIsHungUp(phone);
    expect(await stateOf(callId)).toBe('answered');
    wire.heal();

    await expectAnswered(callId);
  });

  test('counts if it is stored after the time-out', async () => {
    const { callId, phone } = await ringing();
    const holder = new Client({ connectionString: databaseUrl });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from calls where call_id = $1 for update', [callId]);
    await picksUpAndIsHungUp(phone);
    await holder.query('commit');
    await holder.end();

    await expectAnswered(callId);
  });
});
