// Leases by the database's clock: a process that is lost for one process is lost for all, and
// forever.

import { beforeEach, describe, expect, test } from 'vitest';
import { createNodeStore, listNodes, type NodeStore } from '../../src/store/nodes.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';
import { takesOf } from '../support/takes.ts';

const expired = 'expired';

describe.each(databaseKinds)('the nodes on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(async () => {
    await database.clear();
  });

  async function node(ownerId: string, lease?: typeof expired): Promise<NodeStore> {
    const store = createNodeStore(database, ownerId, 60_000);
    await store.register({
      ...{
        nodeId: ownerId.replace(/\/.*/, ''),
        version: '1.2.3',
        questionKey: `key of ${ownerId}`,
      },
    });
    if (lease === expired) await endLease(ownerId);
    return store;
  }
  // In the past by any clock: two statements may fall into one microsecond, or the clock of a
  // virtual machine may step back.
  const endLease = (ownerId: string) =>
    database.pool.query(
      "update nodes set lease_until = now() - interval '1 second' where owner_id = $1",
      [ownerId],
    );
  /** Makes a call that this process dials. Returns a function that ends the call. */
  async function dialing(ownerId: string): Promise<() => Promise<unknown>> {
    const ledger = openLedger(database);
    const call = acceptedCall({ acceptedAt: new Date() });
    await ledger.accept(call, {});
    await takesOf(database.pool, ownerId).take({
      ...{ takeId: 1, isRepeated: false, source: call.request.trunk, limits: undefined },
      ...{ wanted: 1, horizonMs: 0 },
    });
    return () =>
      database.pool.query('update calls set ended_at = now() where call_id = $1', [call.callId]);
  }
  const idle = { calls: 0, draining: false };
  /** Makes a node that looks as if it had renewed for an hour without a gap. */
  async function steady(ownerId: string): Promise<NodeStore> {
    const store = await node(ownerId);
    await database.pool.query(
      "update nodes set steady_since = now() - interval '1 hour' where owner_id = $1",
      [ownerId],
    );
    return store;
  }
  /** Marks all late processes lost, as if none of them had answered. */
  const expireLate = async (store: NodeStore) =>
    await store.expireOthers((await store.findLate()).map(({ ownerId }) => ownerId));
  /** Simulates an outage: for this long, no statement of any process arrived. */
  const outageOf = (seconds: number) =>
    database.pool.query(`update nodes set
      started_at = started_at - interval '${seconds} seconds', renewed_at = renewed_at - interval '${seconds} seconds',
      steady_since = steady_since - interval '${seconds} seconds', lease_until = lease_until - interval '${seconds} seconds'`);

  test('a node that renews in time stays up', async () => {
    const [a, b] = [await node('a/1'), await node('b/1')];

    expect(await b.renew({ calls: 7, draining: true })).toBe(true);
    expect(await expireLate(a)).toEqual([]);
    expect(await listNodes(database.pool)).toMatchObject([
      { ownerId: 'a/1', nodeId: 'a', version: '1.2.3', calls: 0, state: 'up' },
      { ownerId: 'b/1', calls: 7, state: 'draining' },
    ]);
  });

  test('a node with an expired lease is marked lost once, and can never renew again', async () => {
    const a = await steady('a/1');
    const late = await node('b/1', expired);

    expect((await listNodes(database.pool)).map(({ state }) => state)).toEqual(['up', 'late']);
    expect(await expireLate(a)).toEqual(['b/1']);
    expect(await expireLate(a)).toEqual([]);
    expect(await late.renew(idle)).toBe(false);
    expect((await listNodes(database.pool)).map(({ state }) => state)).toEqual(['up', 'lost']);
  });

  test('a lost node shows the calls that no process has ended, not the number it last reported', async () => {
    const [a, late] = [await steady('a/1'), await node('b/1', expired)];
    await late.renew({ calls: 217, draining: false });
    await endLease('b/1');
    const end = await dialing('b/1');
    const callsOfLost = async () => (await listNodes(database.pool))[1]?.calls;

    expect(await callsOfLost()).toBe(217);
    await expireLate(a);
    expect(await callsOfLost()).toBe(1);
    await end();
    expect(await callsOfLost()).toBe(0);
  });

  test('after an outage no node is marked lost before it could renew, whichever renews first', async () => {
    const [a, b] = [await steady('a/1'), await steady('b/1')];
    await dialing('b/1');
    await outageOf(600);

    // This statement left before the outage and arrives before any renewal.
    expect(await expireLate(a)).toEqual([]);
    await a.renew(idle);
    expect(await expireLate(a)).toEqual([]);
    expect(await b.renew(idle)).toBe(true);
  });

  test('after an outage a node that is gone is marked lost one lease later', async () => {
    const [a] = [await steady('a/1'), await steady('b/1')];
    await outageOf(600);
    await a.renew(idle);
    const later = (ms: number) =>
      database.pool.query(
        `update nodes set steady_since = steady_since - ${ms} * interval '1 millisecond' where owner_id = 'a/1'`,
      );

    await later(55_000);
    await a.renew(idle);
    expect(await expireLate(a)).toEqual([]);
    await later(5_000);
    expect(await expireLate(a)).toEqual(['b/1']);
  });

  test.each([
    ['comes late', 31, false],
    ['follows a failed one', 1, true],
    ['follows one that is dated in the future', -3_600, false],
  ])('a renewal that %s restarts the steady period', async (_, gapS, afterFailure) => {
    const a = await steady('a/1');
    await node('b/1', expired);
    await database.pool.query(
      `update nodes set renewed_at = now() - interval '${gapS} seconds' where owner_id = 'a/1'`,
    );

    await a.renew(idle, { afterFailure });
    expect(await expireLate(a)).toEqual([]);
  });

  test('renewals in quick succession keep the steady period, although SQL rounds their times', async () => {
    const a = await steady('a/1');
    await node('b/1', expired);
    // The columns hold rounded milliseconds, so half of the times are in the near future.
    for (let count = 0; count < 500; count += 1) await a.renew(idle);

    expect(await expireLate(a)).toEqual(['b/1']);
  });

  test('a node that has just started marks only its predecessors lost', async () => {
    await node('b/1', expired);
    await node('a/1', expired);
    await outageOf(1);
    const again = await node('a/2');

    expect(await expireLate(again)).toEqual(['a/1']);
  });

  test('a node of the same name that still renews is not a predecessor', async () => {
    const twin = await node('a/1');
    const again = await node('a/2');
    await outageOf(1);
    await twin.renew(idle);
    await endLease('a/1');

    expect(await expireLate(again)).toEqual([]);
  });

  test('a lost node marks no other node lost', async () => {
    const a = await steady('a/1');
    await node('b/1', expired);
    await database.pool.query("update nodes set lost_at = now() where owner_id = 'a/1'");

    expect(await expireLate(a)).toEqual([]);
  });

  test('finds late nodes with the addresses and the key for asking them', async () => {
    const a = await steady('a/1');
    const late = await node('b/1', expired);
    await node('c/1');
    await late.announce(['http://10.0.0.4:3000']);

    expect(await a.findLate()).toEqual([
      {
        ...{ ownerId: 'b/1', questionKey: 'key of b/1' },
        ...{ urls: ['http://10.0.0.4:3000'], lateMs: expect.any(Number) },
      },
    ]);
  });

  test('counts how late a node is only while the asking node could renew', async () => {
    const a = await steady('a/1');
    await node('b/1', expired);
    const lateMs = async () => (await a.findLate())[0]?.lateMs;
    const set = (what: string) => database.pool.query(`update nodes set ${what}`);

    await set(
      `lease_until = now() - interval '6 minutes', steady_since = now() - interval '1 hour'`,
    );
    await a.renew(idle);
    expect(await lateMs()).toBeGreaterThanOrEqual(360_000);
    await set(
      `lease_until = now() - interval '1 hour', steady_since = now() - interval '2 minutes'`,
    );
    await a.renew(idle);
    expect(await lateMs()).toBeGreaterThanOrEqual(120_000);
    expect(await lateMs()).toBeLessThan(360_000);
  });

  test('marks only chosen nodes lost, and none that has renewed since it was chosen', async () => {
    const a = await steady('a/1');
    const [, c] = [await node('b/1', expired), await node('c/1', expired), await node('d/1')];

    expect(await a.expireOthers(['d/1', 'unknown'])).toEqual([]);
    await c.renew(idle);
    expect(await a.expireOthers(['b/1', 'c/1'])).toEqual(['b/1']);
  });

  test('a late node that no other node has marked lost can renew', async () => {
    const late = await node('a/1', expired);
    expect(await late.renew(idle)).toBe(true);
  });

  test('a lost node that runs again under its name is listed while it has calls left', async () => {
    await node('a/1');
    const end = await dialing('a/1');
    const again = await node('a/2');
    await again.expireOthers('everyone');
    const shown = async () => (await listNodes(database.pool)).map(({ ownerId }) => ownerId);

    expect(await shown()).toEqual(['a/1', 'a/2']);
    await end();
    expect(await shown()).toEqual(['a/2']);
    await again.leave();
    expect(await shown()).toEqual([]);
  });

  test('lists all other nodes as lost for a process that has the database to itself', async () => {
    const a = await node('a/1');
    await a.renew({ calls: 3, draining: false });

    expect(await listNodes(database.pool, { alone: true })).toMatchObject([
      { ownerId: 'a/1', state: 'lost', calls: 0 },
    ]);
  });

  test('a process that has the database to itself marks all others lost', async () => {
    await node('a/1');
    const b = await node('b/1');

    expect(await b.expireOthers('everyone')).toEqual(['a/1']);
    expect(await b.renew(idle)).toBe(true);
  });

  test('the database counts the age of a lease from its last renewal', async () => {
    const a = await node('a/1');
    const agoS = (seconds: number) =>
      database.pool.query(`update nodes set renewed_at = now() - interval '${seconds} seconds'`);

    await agoS(90);
    expect((await listNodes(database.pool))[0]?.leaseAgeMs).toBeGreaterThanOrEqual(90_000);
    await agoS(-5);
    expect((await listNodes(database.pool))[0]?.leaseAgeMs).toBe(0);
    await agoS(90);
    await a.renew(idle);
    expect((await listNodes(database.pool))[0]?.leaseAgeMs).toBeLessThan(90_000);
  });

  test('the node that marks another lost takes over its calls, and knows their former owner', async () => {
    const a = await steady('a/1');
    await node('b/1', expired);
    await dialing('b/1');
    const owners = async () =>
      (
        await database.pool.query<{ owner_id: string; previous_owner_id: string }>(
          'select owner_id, previous_owner_id from calls',
        )
      ).rows;

    await expireLate(a);
    expect(await owners()).toEqual([{ owner_id: 'a/1', previous_owner_id: 'b/1' }]);
  });

  test('takes over calls that a process took at its last moment, or left behind', async () => {
    const [a, b] = [await node('a/1'), await node('b/1')];
    await dialing('b/1');
    expect(await a.takeOverLeft()).toBe(0);
    await b.leave();
    expect(await a.takeOverLeft()).toBe(1);
    expect(await a.takeOverLeft()).toBe(0);
  });

  test('a node that leaves is deleted', async () => {
    const a = await node('a/1');
    await a.leave();

    expect(await listNodes(database.pool)).toEqual([]);
    expect(await a.renew(idle)).toBe(false);
  });
});
