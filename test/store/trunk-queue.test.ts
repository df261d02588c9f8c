// What a trunk allows, whoever asks: starts by one clock, slots that are counted once, calls that are taken once.

import { beforeEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { TrunkLimits, TrunkQueue } from '../../src/calls/dialout-ports.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import { createTrunkQueue } from '../../src/store/trunk-queue.ts';
import { acceptedCall, endEvent, storedLeg } from '../support/call-records.ts';
import { databaseKinds } from '../support/databases.ts';
import { eachWithLedger, type LedgerRig } from './ledger-rig.ts';

describe.each(databaseKinds)('the queue of a trunk on %s', (kind) => {
  let rig: LedgerRig;
  let nodes: readonly [TrunkQueue, TrunkQueue];
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });
  beforeEach(() => {
    rig.setNow(new Date());
    nodes = [
      createTrunkQueue(rig.database.pool, 'a/1'),
      createTrunkQueue(rig.database.pool, 'b/1'),
    ];
  });

  let age = 0;
  async function accept(trunk = 'carrier', queueTimeoutMs = 300_000): Promise<AcceptedCall> {
    const base = acceptedCall({ acceptedAt: new Date(Date.now() - 1_000 + age++) });
    const call = { ...base, request: { ...base.request, trunk, queueTimeoutMs } };
    await rig.ledger.accept(call, {});
    return call;
  }
  const ask = (limits: TrunkLimits, wanted = 50, horizonMs = 200) => ({
    ...{ trunk: 'carrier', limits, wanted, horizonMs },
  });
  const idsOf = (grants: readonly { readonly call: AcceptedCall }[]): CallId[] =>
    grants.map(({ call }) => call.callId);

  test('gives out those that have waited longest, each once, and nobody claims them again', async () => {
    const calls = [await accept(), await accept(), await accept()];
    await accept('another');

    const first = await nodes[0].take(ask({ maxConcurrentCalls: 10 }, 2));
    const second = await nodes[1].take(ask({ maxConcurrentCalls: 10 }));

    expect(idsOf([...first.grants, ...second.grants])).toEqual(calls.map(({ callId }) => callId));
    expect(first.grants[0]?.call).toEqual(calls[0]);
    expect(first.retryInMs).toBe(0);
    expect(second.retryInMs).toBeUndefined();
    expect(await rig.ledger.claimForDialing(calls[0]?.callId as CallId, 'b/1')).toBeUndefined();
    expect(await rig.rowOf(calls[0]?.callId ?? '')).toMatchObject({
      owner_id: 'a/1',
      state: 'dialing',
      status: 'dialing',
    });
  });

  test('spaces starts by the rate, over all nodes', async () => {
    for (let index = 0; index < 10; index += 1) await accept();
    const limits = { callsPerSecond: 2 };

    // Starts at 0, 500, 1000 and 1500 ms from the first; what is beyond the horizon is not given out.
    const first = await nodes[0].take(ask(limits, 3, 1_900));
    const second = await nodes[1].take(ask(limits, 50, 1_900));
    const third = await nodes[0].take(ask(limits, 50, 1_400));

    const from = first.grants[0]?.startAtMs ?? Number.NaN;
    const steps = [...first.grants, ...second.grants].map(({ startAtMs }) =>
      Math.round(startAtMs - from),
    );
    expect(steps).toEqual([0, 500, 1_000, 1_500]);
    expect(first.clockMs).toBeGreaterThanOrEqual(from);
    expect(second.clockMs).toBeGreaterThan(first.clockMs);
    expect(third.grants).toEqual([]);
    expect(third.retryInMs).toBeGreaterThan(0);
  });

  test('saves nothing up while nobody calls', async () => {
    await rig.database.pool.query(
      `insert into trunk_pacing values ('carrier', now() - interval '1 hour')`,
    );
    for (let index = 0; index < 10; index += 1) await accept();

    const { grants } = await nodes[0].take(ask({ callsPerSecond: 10 }, 50, 50));
    expect(grants).toHaveLength(1);
  });

  test('tells of calls that were taken without the knowledge of whoever took them', async () => {
    const calls = [await accept(), await accept(), await accept(), await accept()];
    await accept('another');
    const { grants } = await nodes[0].take(ask({ maxConcurrentCalls: 4 }));
    const [known, started, over, lost] = idsOf(grants) as [CallId, CallId, CallId, CallId];
    await rig.ledger.recordInvite(started, storedLeg);
    await rig.ledger.claimEnd(over, endEvent(calls[2] as AcceptedCall), []);

    const untold = await nodes[0].untold('carrier', [known]);
    expect(untold).toEqual([calls[3]]);
    expect(untold[0]?.callId).toBe(lost);
    expect(await nodes[0].untold('another', [])).toEqual([]);
    expect(await nodes[1].untold('carrier', [])).toEqual([]);
    // By then it is being ended as a call that nobody has.
    await rig.database.pool.query(`update calls set dial_started_at = now() - interval '1 minute'`);
    expect(await nodes[0].untold('carrier', [])).toEqual([]);
  });

  test('gives a call that missed its start the next one', async () => {
    await accept();
    const { grants } = await nodes[0].take(ask({ callsPerSecond: 0.1 }));

    const next = await nodes[1].nextStart('carrier', 10_000);
    expect(Math.round(next.startAtMs - (grants[0]?.startAtMs ?? Number.NaN))).toBe(10_000);
    expect(next.clockMs).toBeLessThan(next.startAtMs);
  });

  test('gives no more than there are slots, until one is released', async () => {
    for (let index = 0; index < 5; index += 1) await accept();
    const limits = { maxConcurrentCalls: 2 };
    const first = await nodes[0].take(ask(limits));

    expect(first.grants).toHaveLength(2);
    const none = await nodes[1].take(ask(limits));
    expect(none.grants).toEqual([]);
    expect(none.retryInMs).toBeUndefined();
    await nodes[0].release(idsOf(first.grants).slice(0, 1));
    expect((await nodes[1].take(ask(limits))).grants).toHaveLength(1);
  });

  test('never gives two nodes that ask at once more than there is', async () => {
    for (let index = 0; index < 40; index += 1) await accept();
    const taken = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        nodes[index % 2 === 0 ? 0 : 1].take(ask({ maxConcurrentCalls: 7 }, 3)),
      ),
    );
    const callIds = taken.flatMap(({ grants }) => idsOf(grants));

    expect(callIds).toHaveLength(7);
    expect(new Set(callIds).size).toBe(7);
  });

  test('does not give out what has waited too long', async () => {
    const call = await accept('carrier', 500);
    expect((await nodes[0].take(ask({ maxConcurrentCalls: 5 }))).grants).toEqual([]);
    expect(await rig.ledger.expired(10)).toEqual([call.callId]);
  });

  test('counts who waits by trunk', async () => {
    await Promise.all([accept(), accept(), accept('another')]);
    await nodes[0].take(ask({ maxConcurrentCalls: 1 }));

    expect(await nodes[1].waitingByTrunk()).toEqual(
      new Map([
        ['carrier', 1],
        ['another', 1],
      ]),
    );
  });

  test('frees the slots of calls that ended while nobody could release them, some time later', async () => {
    const { pool } = rig.database;
    await createNodeStore(pool, 'a/1', 60_000).register({ nodeId: 'a', version: '1' });
    for (let index = 0; index < 3; index += 1) await accept();
    const [kept, forgotten] = idsOf(
      (await nodes[0].take(ask({ maxConcurrentCalls: 9 }, 2))).grants,
    );
    const [ofLost] = idsOf((await nodes[1].take(ask({ maxConcurrentCalls: 9 }))).grants);
    const slots = async () =>
      (await pool.query<{ call_id: string }>('select call_id from trunk_slots')).rows.map(
        (row) => row.call_id,
      );

    await nodes[0].releaseLost([kept as CallId]);
    expect(await slots()).toHaveLength(3);
    await pool.query(
      `update trunk_slots set taken_at = now() - interval '1 hour';
       update calls set ended_at = now() - interval '1 minute'`,
    );
    await nodes[0].releaseLost([kept as CallId]);
    expect(await slots()).toEqual([kept]);
    expect([forgotten, ofLost]).not.toContain(undefined);
  });
});
