import { beforeEach, describe, expect, test } from 'vitest';
import { readBacklog, readDatabaseBytes } from '../../src/store/backlog.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';

const agoMs = (ms: number): Date => new Date(Date.now() - ms);
/** The database's clock is this machine's, but the test itself takes time. */
const tolerance = -3;

describe.each(databaseKinds)('what waits in %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(async () => {
    await database.clear();
  });

  async function accept(waitedMs: number, trunk?: string): Promise<string> {
    const base = acceptedCall({ acceptedAt: agoMs(waitedMs) });
    const { trunk: _, ...request } = base.request;
    const call = { ...base, request: { ...request, ...(trunk === undefined ? {} : { trunk }) } };
    await openLedger(database).accept(call, {});
    return call.callId;
  }

  const owing = (callId: string, accountId: string, lateMs: number) => ({
    ...{ callId, day: '2026-01-01', accountId, origin: 'https://receiver.example' },
    nextAttemptAt: agoMs(lateMs),
  });

  test('nothing', async () => {
    expect(await readBacklog(database.pool)).toEqual({
      ...{ waitingCalls: 0, oldestWaitingCallMs: 0, owingCalls: 0, notificationsLateMs: 0 },
    });
  });

  test('calls that nobody dials yet, on every trunk and on none', async () => {
    await accept(5_000, 'carrier');
    await accept(60_000, 'another');
    await accept(1_000);
    const dialled = await accept(900_000, 'carrier');
    await database.pool.query('update calls set dial_started_at = now() where call_id = $1', [
      dialled,
    ]);
    const cancelled = await accept(900_000, 'carrier');
    await database.pool.query('update calls set ended_at = now() where call_id = $1', [cancelled]);

    const { waitingCalls, oldestWaitingCallMs } = await readBacklog(database.pool);
    expect(waitingCalls).toBe(3);
    expect(oldestWaitingCallMs).toBeCloseTo(60_000, tolerance - 1);
  });

  test('notifications, by the receiver whose next one is the latest', async () => {
    await insertRows(database.pool, 'notification_lanes', [
      owing('call-1', 'acme', -60_000),
      owing('call-2', 'acme', 4_000),
      owing('call-3', 'acme', 3_000),
      owing('call-4', 'other', 90_000),
      owing('call-5', 'third', -1_000),
    ]);

    const { owingCalls, notificationsLateMs } = await readBacklog(database.pool);
    expect(owingCalls).toBe(5);
    expect(notificationsLateMs).toBeCloseTo(90_000, tolerance - 1);
  });

  test('a notification that is not due yet is not late', async () => {
    await insertRows(database.pool, 'notification_lanes', [owing('call-1', 'acme', -60_000)]);

    expect(await readBacklog(database.pool)).toMatchObject({
      ...{ owingCalls: 1, notificationsLateMs: 0 },
    });
  });
});

test('is found by indexes, however many calls and notifications there are', async () => {
  await using database = await openTestDatabase('postgres');
  await database.pool.query(`
    insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status,
      accepted_at, dial_before, trunk, dial_started_at, ended_at, end_published_at)
    select 'call-' || n, '', '', 'acme', 'app', 'bot', '{}', 'ended', 'completed',
      now(), now(), 'carrier', now(), now(), now() from generate_series(1, 3000) n`);
  await database.pool.query(`
    insert into notification_lanes (call_id, day, account_id, origin, next_attempt_at)
    select 'call-' || n, current_date, 'acme', 'https://' || n % 10, now() from generate_series(1, 1000) n`);
  await database.pool.query('analyze calls, notification_lanes');
  const statements: string[] = [];
  await readBacklog({
    query: async (text) => {
      statements.push(text as string);
      return await database.pool.query(text as string);
    },
  });

  const { rows } = await database.pool.query<Record<string, string>>(
    `explain ${statements[0] ?? ''}`,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/Index (Only )?Scan using calls_(open|waiting)/);
  expect(plan).not.toMatch(/Seq Scan on calls/);
  // Only the count reads more than one row of each receiver, and it has a bound of its own.
  expect(plan.match(/Scan using notification_lanes_due/g)?.length).toBeGreaterThanOrEqual(2);
});

test('PostgreSQL knows its size', async () => {
  await using database = await openTestDatabase('postgres');

  expect(await readDatabaseBytes(database.pool)).toBeGreaterThan(1e6);
});
