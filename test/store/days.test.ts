// The partitions of the tables that keep rows by age: created ahead, found by the day of a call,
// and dropped after the retention.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { readCapture, writeCaptures } from '../../src/capture/capture-store.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { loadStatement, settleStatement } from '../../src/notifier/notification-sql.ts';
import { owedFor } from '../../src/notifier/owed.ts';
import { type CallLedger, createCallLedger } from '../../src/store/calls/call-ledger.ts';
import { dayOf, listDays, makeDays, tablesByDay } from '../../src/store/days.ts';
import { appendStatement } from '../../src/store/outbox/append-statement.ts';
import { type AppendedStep, appendSteps } from '../../src/store/outbox/call-appends.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { acceptedCall, answeredEventOf } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';
import { recordedLogger } from '../support/recorded-logger.ts';
import { rowsIn } from '../support/tables.ts';

const lateEvening = new Date('2026-03-01T23:59:58.000Z');
const nextMorning = new Date('2026-03-02T00:00:03.000Z');
const dayMs = 86_400_000;
const later = (time: Date, days: number) => new Date(time.getTime() + days * dayMs);
const ownerId = 'node-1/abc';

describe.each(databaseKinds)('days on %s', (kind) => {
  let now: Date;
  let ledger: CallLedger;

  const database = forSuite(() => openTestDatabase(kind, { own: true }));
  beforeEach(async () => {
    // Drops the partitions of the previous test, and those of the day on which the database was
    // created.
    for (const { table, day } of await listDays(database.pool))
      await database.pool.query(`drop table ${table}_${day.replaceAll('-', '')}`);
    now = lateEvening;
    ledger = openLedger(database, () => now);
  });
  afterEach(() => database.clear());

  const make = (logger = silentLogger) => makeDays(database.pool, logger, now);
  const days = async (): Promise<readonly string[]> =>
    (await listDays(database.pool)).map(({ table, day }) => `${table} ${day}`);
  const everyTable = (...made: readonly string[]) =>
    made.flatMap((day) => tablesByDay.toSorted().map((table) => `${table} ${day}`));

  /** Returns the partition of each row. */
  async function places(): Promise<readonly string[]> {
    const parts = tablesByDay.map(
      (table) => `select tableoid::regclass::text as place from ${table}`,
    );
    const { rows } = await database.pool.query<{ place: string }>(
      `select distinct place from (${parts.join(' union all ')}) as rows order by place`,
    );
    return rows.map(({ place }) => place);
  }

  async function accept(acceptedAt: Date): Promise<AcceptedCall> {
    const call = acceptedCall({ acceptedAt });
    const queuedNotification = { origin: 'http://127.0.0.1:9' };
    await ledger.accept(call, { queuedNotification });
    await database.pool.query('update calls set owner_id = $1 where call_id = $2', [
      ownerId,
      call.callId,
    ]);
    return call;
  }

  async function answer(call: AcceptedCall): Promise<AppendedStep | undefined> {
    const { data, ...rest } = answeredEventOf(call, now.toISOString());
    // The first notification is for the acceptance.
    const event = { ...rest, data: { ...data, notificationSequence: 2 } } as CallEvent;
    const ports = {
      ...{ pool: database.pool, ownerId, now: () => now, passRefusedAfterMs: 60_000 },
      owedFor: (of: AcceptedCall, what: typeof event) => owedFor(of, what, () => true),
      publishedThrough: () => undefined,
      leaseUntil: (at: Date) => later(at, 1),
    };
    const step = { events: [event], answeredAt: now };
    const [stored] = await appendSteps(ports, [{ call, step, isUntaken: false, isRepeated: true }]);
    return stored;
  }

  async function settle({ callId, acceptedAt }: AcceptedCall, sequence: number): Promise<void> {
    const { rows } = await database.pool.query<{ event_id: string }>(
      'select event_id from notifications where call_id = $1 and sequence = $2',
      [callId, sequence],
    );
    const result = { attempt: 1, started_at: now, duration_ms: 5, state: 'delivered', at: now };
    const given = [{ ...result, call_id: callId, event_id: rows[0]?.event_id, refused: false }];
    await database.pool.query({
      ...settleStatement(dayOf(acceptedAt)),
      values: [JSON.stringify(given), '[]', ownerId],
    });
  }

  /** Makes a settled call with a row in each table. */
  async function live(acceptedAt: Date): Promise<AcceptedCall> {
    const call = await accept(acceptedAt);
    await answer(call);
    await settle(call, 1);
    await writeCaptures(database.pool, [{ callId: call.callId, capture: {} }]);
    await database.pool.query('delete from notification_lanes where call_id = $1', [call.callId]);
    await database.pool.query(
      `update calls set state = 'ended', ended_at = $2, end_published_at = $2 where call_id = $1`,
      [call.callId, now],
    );
    return call;
  }

  test('are created ahead, once, and continued later', async () => {
    await make();
    await make();
    const first = ['2026-03-01', '2026-03-02', '2026-03-03'];
    expect(await days()).toEqual(everyTable(...first));

    now = nextMorning;
    await make();
    expect(await days()).toEqual(everyTable(...first, '2026-03-04'));
  });

  test('hold all rows of a call, whenever they are written', async () => {
    await make();
    const call = await accept(lateEvening);
    now = nextMorning;
    expect(await answer(call)).toMatchObject({ kind: 'stored', owed: [{ sequence: 2 }] });
    await settle(call, 2);
    await writeCaptures(database.pool, [
      { callId: call.callId, capture: { notes: { notes: [], left: 1 } } },
    ]);

    expect(await places()).toEqual(tablesByDay.toSorted().map((table) => `${table}_20260301`));
    expect(await readCapture(database.pool, call.callId)).toEqual({
      notes: { notes: [], left: 1 },
    });
  });

  test('store a step that is repeated after midnight once', async () => {
    await make();
    const call = await accept(lateEvening);
    await answer(call);
    now = nextMorning;
    await make();

    expect(await answer(call)).toMatchObject({ kind: 'stored', owed: [] });

    expect(await rowsIn(database.pool, 'call_events')).toHaveLength(2);
    expect(await rowsIn(database.pool, 'notifications')).toHaveLength(2);
  });

  test('without a partition use the default partition, and are deleted by age', async () => {
    const call = await live(lateEvening);
    expect(await places()).toEqual(tablesByDay.toSorted().map((table) => `${table}_rest`));
    const { logger, lines } = recordedLogger();
    await make(logger);
    const made = everyTable('2026-03-02', '2026-03-03');
    expect(await days()).toEqual(made);
    expect(lines).toHaveLength(4);
    now = nextMorning;
    expect(await answer(call)).toMatchObject({ kind: 'not owned' });

    now = later(now, 40);
    await ledger.purge(later(now, -30));
    expect(await places()).toEqual([]);
  });

  test('are dropped once none of their calls is left', async () => {
    await make();
    const kept = await accept(lateEvening);
    await live(lateEvening);
    now = nextMorning;
    await live(nextMorning);

    now = later(now, 30);
    await ledger.purge(later(now, -30));
    // Attempts are deleted a week after the newest one.
    expect(await places()).toEqual([
      ...['call_captures_20260301', 'call_captures_20260302'],
      ...['call_events_20260301', 'call_events_20260302'],
      ...['notifications_20260301', 'notifications_20260302'],
    ]);

    now = later(now, 1);
    await ledger.purge(later(now, -30));
    expect(await places()).toEqual([
      ...['call_captures_20260301', 'call_events_20260301', 'notifications_20260301'],
    ]);
    expect(await rowsIn(database.pool, 'calls')).toMatchObject([{ call_id: kept.callId }]);

    await database.pool.query('delete from notification_lanes');
    await database.pool.query('update calls set ended_at = $1, end_published_at = $1', [
      lateEvening,
    ]);
    await ledger.purge(later(now, -30));
    expect(await places()).toEqual([]);
    expect(await days()).not.toContain('call_events 2026-03-01');
  });

  test('keep attempts for a week after the newest, including later replays', async () => {
    await make();
    const call = await accept(lateEvening);
    await settle(call, 1);
    now = later(lateEvening, 6);
    await settle(call, 1);

    now = later(lateEvening, 12);
    await ledger.purge(later(now, -30));
    expect(await rowsIn(database.pool, 'delivery_attempts')).toHaveLength(2);
    now = later(lateEvening, 14);
    await ledger.purge(later(now, -30));
    expect(await rowsIn(database.pool, 'delivery_attempts')).toEqual([]);

    await settle(call, 1);
    expect(await places()).toContain('delivery_attempts_rest');
    now = later(lateEvening, 20);
    await ledger.purge(later(now, -30));
    expect(await rowsIn(database.pool, 'delivery_attempts')).toHaveLength(1);
    now = later(lateEvening, 22);
    await ledger.purge(later(now, -30));
    expect(await rowsIn(database.pool, 'delivery_attempts')).toEqual([]);
  });

  // With 30 partitions, a plan that includes all of them costs several times as much.
  test.each([
    [
      'append',
      appendStatement(dayOf(lateEvening), 'plain'),
      ['[]', ownerId, '[]', '[]', lateEvening, lateEvening, lateEvening, '[]'],
    ],
    ['load', loadStatement(dayOf(lateEvening)), [[], ownerId]],
    ['settle', settleStatement(dayOf(lateEvening)), ['[]', '[]', ownerId]],
  ])('appear as one partition in the plan of %s', async (_name, { text }, values) => {
    await make();
    const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toContain('notifications_20260301');
    expect(plan).not.toMatch(/_202603(?!01)|_rest/);
  });

  // The embedded database has one session, so no other session can hold a lock.
  if (kind === 'postgres') {
    test('are created once by nodes that start together', async () => {
      await Promise.all([make(), make(), make()]);
      expect(await days()).toHaveLength(12);
    });

    test('that a client is reading do not delay calls, and are dropped by the next purge', async () => {
      await make();
      now = later(lateEvening, 40);
      const reader = await database.pool.connect();
      await reader.query('begin; select from notifications');
      const { logger, lines } = recordedLogger();
      const watched = createCallLedger({
        ...{ database, secrets: createSecretBox(Buffer.alloc(32)), logger },
        clock: { now: () => now },
      });

      await watched.purge(later(now, -30));
      expect(await days()).toEqual(
        (await days()).filter((each) => each.startsWith('notifications ')),
      );
      expect(lines.map(({ table }) => table)).toEqual([
        'notifications',
        'notifications',
        'notifications',
      ]);
      await live(now);

      await reader.query('commit');
      reader.release();
      await watched.purge(later(now, -30));
      expect(await days()).toEqual([]);
    });
  }
});
