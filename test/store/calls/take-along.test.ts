// The statement that accepts calls takes calls too, by the same rules as a take of its own.

import type { Pool, QueryConfig } from 'pg';
import { beforeEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type {
  AcceptExtra,
  AcceptResult,
  CallIntake,
  CallTakes,
  TakeAlong,
  Taken,
  TakeRequest,
  TrunkLimits,
} from '../../../src/calls/dialout-ports.ts';
import { createCallIntake } from '../../../src/store/calls/call-intake.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { permitsOf, takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

type Ended = Taken | 'undone' | { readonly lost: unknown };

describe.each(databaseKinds)('a take along with accepted calls on %s', (kind) => {
  let rig: LedgerRig;
  let intake: CallIntake;
  let takes: CallTakes;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  const openIntake = (pool: Pool) =>
    createCallIntake(pool, secrets, 1, { ownerId: 'a/1', permits: permitsOf(pool, 'a/1') });
  beforeEach(async () => {
    rig.setNow(new Date());
    const { pool } = rig.database;
    intake = openIntake(pool);
    takes = takesOf(pool, 'a/1');
    // The first take of a process and a trunk has a statement of its own, which creates their rows.
    await takes.take(nextTake(0, { maxConcurrentCalls: 1 }));
  });

  let age = 0;
  function newCall(trunk = 'carrier'): AcceptedCall {
    const base = acceptedCall({ acceptedAt: new Date(Date.now() - 1_000 + age++) });
    return { ...base, request: { ...base.request, trunk } };
  }

  let takeId = 0;
  function nextTake(wanted: number, limits?: TrunkLimits): TakeRequest {
    takeId += 1;
    return { takeId, isRepeated: false, source: 'carrier', wanted, horizonMs: 200, limits };
  }

  /** Accepts calls in one batch, and lets the batch take calls along. */
  function accept(calls: readonly AcceptedCall[], limits?: TrunkLimits, extra: AcceptExtra = {}) {
    const counts: number[] = [];
    let end: (ended: Ended) => void = () => undefined;
    const ended = new Promise<Ended>((resolve) => {
      end = resolve;
    });
    let request: TakeAlong['request'] | undefined;
    const takeAlong = (count: number): TakeAlong => {
      counts.push(count);
      request = nextTake(count, limits);
      return {
        request,
        taken: (taken) => end(taken),
        undone: () => end('undone'),
        lost: (lost) => end({ lost }),
      };
    };
    const results = Promise.all(calls.map((call) => intake.accept(call, { ...extra, takeAlong })));
    return { results, counts, ended, request: () => request };
  }

  const taken = { kind: 'accepted', isTaken: true } satisfies AcceptResult;
  const waiting = { kind: 'accepted' } satisfies AcceptResult;

  test('takes the calls that the statement stores', async () => {
    const calls = [newCall(), newCall()];
    const { results, counts, ended } = accept(calls);

    expect(await results).toEqual([taken, taken]);
    expect(counts).toEqual([2]);
    const { grants } = (await ended) as Taken;
    expect(grants.map(({ call, queued }) => [call, queued])).toEqual(
      calls.map((call) => [call, 'stored']),
    );
    expect(await rig.rowOf(calls[0]?.callId ?? '')).toMatchObject({
      owner_id: 'a/1',
      state: 'dialing',
      last_event_sequence: 1,
    });
  });

  test('takes calls that have waited longer first', async () => {
    const older = newCall();
    await intake.accept(older, {});
    const { results, ended } = accept([newCall()]);

    expect(await results).toEqual([waiting]);
    const { grants } = (await ended) as Taken;
    expect(grants.map(({ call, queued }) => [call.callId, queued])).toEqual([
      [older.callId, 'stored'],
    ]);
  });

  test("keeps to the trunk's limits", async () => {
    const first = accept([newCall(), newCall()], { maxConcurrentCalls: 1 });
    expect(await first.results).toEqual([taken, waiting]);
    await first.ended;

    const second = accept([newCall()], { maxConcurrentCalls: 1 });
    expect(await second.results).toEqual([waiting]);
    expect(await second.ended).toMatchObject({ grants: [] });
  });

  test('takes nothing for a request that is repeated', async () => {
    const extra = { idempotency: { key: 'k', requestHash: 'h' } };
    const call = newCall();
    await accept([call], undefined, extra).ended;
    const { callId, sid, conversationId } = call;

    const repeated = accept([newCall()], undefined, extra);

    const answer = { callId, sid, conversationId };
    expect(await repeated.results).toEqual([{ kind: 'replayed', answer }]);
    expect(await repeated.ended).toMatchObject({ grants: [] });
  });

  test('takes nothing along with calls of several trunks', async () => {
    const { results, counts } = accept([newCall(), newCall('another')]);

    expect([await results, counts]).toEqual([[waiting, waiting], []]);
  });

  test('takes nothing along with more than ten calls', async () => {
    const calls = Array.from({ length: 11 }, () => newCall());
    const { results, counts } = accept(calls);

    expect([await results, counts]).toEqual([calls.map(() => waiting), []]);
  });

  test.each([
    { rows: 'of the process', table: 'call_takes' },
    { rows: 'of the trunk', table: 'trunk_pacing' },
  ])('takes nothing if the row $rows is locked or missing', async ({ table }) => {
    const { pool } = rig.database;
    await pool.query(`delete from ${table}`);
    const limits = { maxConcurrentCalls: 5 };
    const missing = accept([newCall()], limits);
    expect(await missing.results).toEqual([waiting]);
    expect(await missing.ended).toBe('undone');
    // PGlite has only one session, which never waits for itself.
    if (kind === 'pglite') return;

    await takes.take(nextTake(1, limits));
    const other = await pool.connect();
    await other.query(`begin; select from ${table} for update`);
    try {
      const locked = accept([newCall()], limits);
      expect(await locked.results).toEqual([waiting]);
      expect(await locked.ended).toBe('undone');
    } finally {
      await other.query('rollback');
      other.release();
    }
  });

  test('ends after all that wait for the batch have been told', async () => {
    const extra = { idempotency: { key: 'k', requestHash: 'h' } };
    await accept([newCall()], undefined, extra).ended;
    const steps: string[] = [];
    const first = accept([newCall()]);
    const repeated = intake.accept(newCall(), extra);
    const told = Promise.all([first.results, repeated]).then(() => steps.push('told'));
    await Promise.all([told, first.ended.then(() => steps.push('taken'))]);

    expect(steps).toEqual(['told', 'taken']);
  });

  test('is lost with the answer, and its calls are found by a take that repeats it', async () => {
    const { pool } = rig.database;
    const query = async (asked: QueryConfig) => {
      await pool.query(asked);
      throw new Error('Connection terminated unexpectedly');
    };
    intake = openIntake({ query } as unknown as Pool);
    const call = newCall();
    const { results, ended, request } = accept([call]);
    await expect(results).rejects.toThrow();
    expect(await ended).toMatchObject({ lost: { message: 'Connection terminated unexpectedly' } });

    const lost = request();
    if (lost === undefined) throw new Error('nothing was taken along');
    const { grants } = await takes.take({ ...lost, isRepeated: true, wanted: 0 });

    expect(grants.map(({ call: { callId } }) => callId)).toEqual([call.callId]);
  });

  test('is undone with the statement', async () => {
    const call = newCall();
    await intake.accept(call, {});

    const again = accept([call]);

    expect(await again.results).toMatchObject([{ kind: 'not-stored' }]);
    expect(await again.ended).toBe('undone');
  });
});
