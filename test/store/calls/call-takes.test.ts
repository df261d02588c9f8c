// Processes take calls: each call is taken once, a lost answer can be requested again, and a
// trunk's starts and slots are counted over all nodes.

import { beforeEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { CallSource, CallTakes, TrunkLimits } from '../../../src/calls/dialout-ports.ts';
import { createNodeStore } from '../../../src/store/nodes.ts';
import { acceptedCall, endEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

type Explained = readonly { readonly Plan: { readonly 'Shared Hit Blocks': number } }[];

describe.each(databaseKinds)('taking calls on %s', (kind) => {
  let rig: LedgerRig;
  let nodes: readonly [CallTakes, CallTakes];
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });
  beforeEach(() => {
    rig.setNow(new Date());
    nodes = [takesOf(rig.database.pool, 'a/1'), takesOf(rig.database.pool, 'b/1')];
  });

  let age = 0;
  async function accept(
    trunk: CallSource = 'carrier',
    queueTimeoutMs = 300_000,
  ): Promise<AcceptedCall> {
    const base = acceptedCall({ acceptedAt: new Date(Date.now() - 1_000 + age++) });
    const { trunk: _, ...request } = base.request;
    const call = {
      ...base,
      request: { ...request, queueTimeoutMs, ...(trunk === 'direct' ? {} : { trunk }) },
    };
    await rig.ledger.accept(call, {});
    return call;
  }
  let takeId = 0;
  const ask = (limits: TrunkLimits | undefined, wanted = 50, horizonMs = 200) => {
    takeId += 1;
    const source: CallSource = 'carrier';
    return { takeId, isRepeated: false, source, limits, wanted, horizonMs };
  };
  const idsOf = (grants: readonly { readonly call: AcceptedCall }[]): CallId[] =>
    grants.map(({ call }) => call.callId);

  test('hands out the calls that have waited longest, each once', async () => {
    const calls = [await accept(), await accept(), await accept()];
    await accept('another');

    const first = await nodes[0].take(ask({ maxConcurrentCalls: 10 }, 2));
    const second = await nodes[1].take(ask({ maxConcurrentCalls: 10 }));

    expect(idsOf([...first.grants, ...second.grants])).toEqual(calls.map(({ callId }) => callId));
    expect(first.grants[0]?.call).toEqual(calls[0]);
    expect(first.retryInMs).toBe(0);
    expect(second.retryInMs).toBeUndefined();
    expect(await rig.rowOf(calls[0]?.callId ?? '')).toMatchObject({
      owner_id: 'a/1',
      state: 'dialing',
      status: 'dialing',
    });
  });

  test('reads only waiting calls, not those that are up', async () => {
    const { pool } = rig.database;
    await pool.query(`
      insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status, owner_id,
        accepted_at, dial_before, dial_started_at)
      select 'call-' || n, n, n, 'account', 'app', 'bot', jsonb_build_object('target', repeat('x', 1000)), 'dialing', 'dialing', 'somebody', now(),
        now() + interval '1 hour', case when n <= 1990 then now() end
      from generate_series(1, 2000) n`);
    // Removes what earlier tests left in this database, too: PGlite has no autovacuum.
    await pool.query('vacuum analyze');
    const take = (id: number) =>
      `select * from take_calls(${id}, false, 'me', '', 1, 200, 0, null)`;
    // The first execution also reads the catalogue. Those reads must not count.
    await pool.query(take(1));

    const { rows } = await pool.query<{ 'QUERY PLAN': Explained }>(
      `explain (analyze, buffers, format json) ${take(2)}`,
    );

    const taken = await pool.query(`select call_id from calls where owner_id = 'me' order by 1`);
    expect(taken.rows).toEqual([{ call_id: 'call-1991' }, { call_id: 'call-1992' }]);
    expect(rows[0]?.['QUERY PLAN'][0]?.Plan['Shared Hit Blocks']).toBeLessThan(200);
  });

  test('spaces starts by the rate, over all nodes', async () => {
    for (let index = 0; index < 10; index += 1) await accept();
    // A slow rate, so that no pause between two statements moves the horizon past the next start.
    const limits = { callsPerSecond: 1 / 30 };

    // The starts are at 0, 30, 60 and 90 s from the first. A start beyond the horizon is not handed
    // out.
    const first = await nodes[0].take(ask(limits, 3, 95_000));
    const second = await nodes[1].take(ask(limits, 50, 95_000));
    const third = await nodes[0].take(ask(limits, 50, 70_000));

    const { rows } = await rig.database.pool.query<{ after_ms: number }>(
      `select extract(epoch from start_at - min(start_at) over ())::double precision * 1000 as after_ms
       from trunk_slots order by start_at`,
    );
    expect(rows.map((row) => Math.round(row.after_ms))).toEqual([0, 30_000, 60_000, 90_000]);
    const waits = [...first.grants, ...second.grants].map(({ startInMs }) => startInMs);
    expect(waits[0]).toBeLessThanOrEqual(0);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(first.tookMs).toBeGreaterThan(0);
    expect(third.grants).toEqual([]);
    expect(third.retryInMs).toBeGreaterThan(0);
  });

  test('does not save up starts while no calls come', async () => {
    await rig.database.pool.query(
      `insert into trunk_pacing values ('carrier', now() - interval '1 hour')`,
    );
    for (let index = 0; index < 10; index += 1) await accept();

    const { grants } = await nodes[0].take(ask({ callsPerSecond: 10 }, 50, 50));
    expect(grants).toHaveLength(1);
  });

  test('repeats a lost answer, and adds no call', async () => {
    const calls = [await accept(), await accept(), await accept()];
    const request = ask({ callsPerSecond: 10 }, 2, 1_000);
    const lost = await nodes[0].take(request);
    // The embedded database's clock may be as coarse as a millisecond.
    await rig.database.pool.query('select pg_sleep(0.005)');
    const again = await nodes[0].take({ ...request, isRepeated: true });

    expect(idsOf(again.grants)).toEqual(calls.slice(0, 2).map(({ callId }) => callId));
    // The repeated answer has the remainder of the first answer's wait.
    for (const [index, { startInMs }] of again.grants.entries()) {
      expect(startInMs).toBeLessThan(lost.grants[index]?.startInMs ?? Number.NaN);
    }
    // A call that has ended in the meantime must not be dialled.
    const ended = calls[0] as AcceptedCall;
    await rig.append('a/1', ended, { ending: { event: endEventOf(ended) } });
    const later = await nodes[0].take({ ...request, isRepeated: true });
    expect(idsOf(later.grants)).toEqual([calls[1]?.callId]);
    expect(await rig.queuedCount()).toBe(1);
  });

  test('takes nothing if a statement arrives after its repetition was answered', async () => {
    const request = ask(undefined);
    // The first copy is still under way when the second is answered, and so is a copy of the
    // following take.
    expect((await nodes[0].take({ ...request, isRepeated: true })).grants).toEqual([]);
    await accept();
    expect((await nodes[0].take(request)).grants).toEqual([]);
    expect((await nodes[0].take({ ...request, takeId: 0 })).grants).toEqual([]);
    expect((await nodes[0].take(ask(undefined))).grants).toHaveLength(1);
    expect((await nodes[0].take(request)).grants).toEqual([]);
  });

  test('takes once if a take is requested many times concurrently', async () => {
    for (let index = 0; index < 9; index += 1) await accept();
    const request = { ...ask({ maxConcurrentCalls: 5 }, 3), isRepeated: true };
    const answers = await Promise.all(Array.from({ length: 6 }, () => nodes[0].take(request)));

    const [first = []] = answers.map(({ grants }) => idsOf(grants));
    expect(answers.map(({ grants }) => idsOf(grants))).toEqual(answers.map(() => first));
    expect(first).toHaveLength(3);
    expect(await rig.queuedCount()).toBe(6);
  });

  test('takes no slot for calls without a trunk or on a trunk without limits', async () => {
    const [direct, carried] = [await accept('direct'), await accept()];
    const directTake = await nodes[0].take({ ...ask(undefined), source: undefined });
    const trunkTake = await nodes[1].take(ask(undefined));

    expect([idsOf(directTake.grants), idsOf(trunkTake.grants)]).toEqual([
      [direct.callId],
      [carried.callId],
    ]);
    expect((await rig.database.pool.query('select from trunk_slots')).rowCount).toBe(0);
  });

  test('gives a call that missed its start the next one', async () => {
    await accept();
    const { grants } = await nodes[0].take(ask({ callsPerSecond: 0.1 }));

    const next = await nodes[1].nextStart('carrier', 10_000);
    expect(grants[0]?.startInMs).toBeLessThanOrEqual(0);
    expect(next.startInMs).toBeGreaterThan(0);
    expect(next.startInMs).toBeLessThanOrEqual(10_000);
  });

  test('hands out no more calls than there are slots, until one is released', async () => {
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

  test('never hands out more calls than the trunk allows to two nodes that ask concurrently', async () => {
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

  test('does not hand out calls that have waited too long', async () => {
    const call = await accept('carrier', 500);
    expect((await nodes[0].take(ask({ maxConcurrentCalls: 5 }))).grants).toEqual([]);
    const { expired, waiting } = await nodes[0].sweep([]);
    expect(expired).toEqual([{ call }]);
    expect(waiting).toEqual(new Map());
  });

  test('counts waiting calls by trunk', async () => {
    await Promise.all([accept(), accept(), accept('another')]);
    await nodes[0].take(ask({ maxConcurrentCalls: 1 }));

    await accept('direct');
    expect((await nodes[1].sweep([])).waiting).toEqual(
      new Map([
        ['carrier', 1],
        ['another', 1],
        [undefined, 1],
      ]),
    );
  });

  test('reports calls that SQL assigns to this node and that the node does not know', async () => {
    for (let index = 0; index < 3; index += 1) await accept();
    const [known, unknown] = idsOf((await nodes[0].take(ask(undefined, 2))).grants);
    await nodes[1].take(ask(undefined, 1));

    expect((await nodes[0].sweep([known as CallId])).notHere).toEqual([]);
    await rig.database.pool.query(`update calls set dial_started_at = now() - interval '1 minute'`);
    expect((await nodes[0].sweep([known as CallId])).notHere).toEqual([unknown]);
  });

  test('frees the slots of calls that ended while no process could release them, after a delay', async () => {
    const { pool } = rig.database;
    await createNodeStore(rig.database, 'a/1', 60_000).register({
      ...{ nodeId: 'a', version: '1', questionKey: 'key' },
    });
    for (let index = 0; index < 3; index += 1) await accept();
    const [kept, forgotten] = idsOf(
      (await nodes[0].take(ask({ maxConcurrentCalls: 9 }, 2))).grants,
    );
    const [ofLost] = idsOf((await nodes[1].take(ask({ maxConcurrentCalls: 9 }))).grants);
    const slots = async () =>
      (await pool.query<{ call_id: string }>('select call_id from trunk_slots')).rows.map(
        (row) => row.call_id,
      );

    await nodes[0].sweep([kept as CallId]);
    expect(await slots()).toHaveLength(3);
    await pool.query(
      `update trunk_slots set taken_at = now() - interval '1 hour';
       update calls set ended_at = now() - interval '1 minute'`,
    );
    await nodes[0].sweep([kept as CallId]);
    expect(await slots()).toEqual([kept]);
    expect([forgotten, ofLost]).not.toContain(undefined);
  });
});
