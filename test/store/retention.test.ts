import { afterEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import { dayOf } from '../../src/store/days.ts';
import { purgeHistory } from '../../src/store/retention.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows, rowsIn } from '../support/tables.ts';

const now = new Date('2026-04-01T12:00:00.000Z');
const limit = new Date('2026-03-15T12:00:00.000Z');
const old = new Date('2026-03-01T12:00:00.000Z');
const dayMs = 86_400_000;

describe.each(databaseKinds)('retention on %s', (kind) => {
  let clock: Date;

  const database = forSuite(() => openTestDatabase(kind));
  const ledger = forSuite(() => openLedger(database, () => clock));

  afterEach(() => database.clear());

  async function accept(): Promise<AcceptedCall> {
    const call = acceptedCall({ acceptedAt: old });
    await ledger.accept(call, {});
    return call;
  }

  /** `doneAt` is null if the call still owes something. */
  async function end({ callId }: AcceptedCall, at: Date, doneAt: Date | null): Promise<void> {
    await database.pool.query(
      "update calls set state = 'ended', ended_at = $2, end_published_at = $3 where call_id = $1",
      [callId, at, doneAt],
    );
  }

  async function acceptAndEnd(): Promise<AcceptedCall> {
    clock = old;
    const call = await accept();
    await end(call, old, old);
    return call;
  }

  async function addHistory(call: AcceptedCall): Promise<void> {
    const { callId, accountId, botId, acceptedAt } = call;
    const common = { callId, day: dayOf(acceptedAt), eventId: `evt-${callId}` };
    const event = { ...common, eventSequence: 2, type: 'dialing', time: old, data: {} };
    await insertRows(database.pool, 'call_events', [event]);
    const sent = { sequence: 1, eventSequence: 1, state: 'delivered', attempts: 1, createdAt: old };
    await insertRows(database.pool, 'notifications', [{ ...common, accountId, botId, ...sent }]);
    await addAttempt(callId, now, acceptedAt);
  }

  async function addAttempt(
    callId: string,
    startedAt: Date,
    acceptedAt = startedAt,
  ): Promise<void> {
    const common = {
      callId,
      day: dayOf(acceptedAt),
      eventId: `evt-${callId}`,
      attempt: 1,
      durationMs: 5,
    };
    await insertRows(database.pool, 'delivery_attempts', [
      { ...common, startedAt, delivered: true },
    ]);
  }

  const countOf = async (table: string) => (await rowsIn(database.pool, table)).length;
  const counts = async () => ({
    events: await countOf('call_events'),
    notifications: await countOf('notifications'),
    attempts: await countOf('delivery_attempts'),
  });

  const callIds = async (): Promise<readonly string[]> => {
    const { rows } = await database.pool.query<{ call_id: string }>('select call_id from calls');
    return rows.map((row) => row.call_id);
  };

  test('deletes an old call with everything that belongs to it, and nothing else', async () => {
    const [gone, kept] = [await acceptAndEnd(), await acceptAndEnd()];
    await addHistory(gone);
    await addHistory(kept);
    await database.pool.query('update calls set accepted_at = $1 where call_id = $2', [
      limit,
      kept.callId,
    ]);
    clock = now;

    expect(await ledger.purge(limit)).toBe(1);

    expect(await callIds()).toEqual([kept.callId]);
    expect(await counts()).toEqual({ events: 2, notifications: 1, attempts: 1 });
  });

  test('keeps a call that still owes something, however old', async () => {
    clock = old;
    const waiting = await accept();
    const unpublished = await accept();
    await end(unpublished, old, null);
    const undelivered = await acceptAndEnd();
    const { callId } = undelivered;
    await insertRows(database.pool, 'notification_lanes', [
      { callId, day: dayOf(old), accountId: 'acme', origin: '', nextAttemptAt: old },
    ]);
    const endedLately = await accept();
    await end(endedLately, now, now);
    clock = now;

    expect(await ledger.purge(limit)).toBe(0);

    const kept = [waiting, unpublished, undelivered, endedLately].map((call) => call.callId);
    expect((await callIds()).toSorted()).toEqual(kept.toSorted());
  });

  test('deletes more calls than fit into one statement', async () => {
    clock = old;
    const calls = Array.from({ length: 1_100 }, () => acceptedCall({ acceptedAt: old }));
    await Promise.all(calls.map((call) => ledger.accept(call, {})));
    await database.pool.query('update calls set ended_at = $1, end_published_at = $1', [old]);
    clock = now;

    expect(await ledger.purge(limit)).toBe(1_100);
    expect(await callIds()).toEqual([]);
  });

  test('stops between two statements, and leaves the rest to the next purge', async () => {
    clock = old;
    const calls = Array.from({ length: 600 }, () => acceptedCall({ acceptedAt: old }));
    await Promise.all(calls.map((call) => ledger.accept(call, {})));
    await database.pool.query('update calls set ended_at = $1, end_published_at = $1', [old]);
    clock = now;

    const stopped = new AbortController();
    const purging = ledger.purge(limit, stopped.signal);
    stopped.abort();
    expect(await purging).toBe(500);
    expect(await callIds()).toHaveLength(100);
    expect(await ledger.purge(limit, stopped.signal)).toBe(0);
  });

  test('keeps conversations and test runs as long as messages, counted from their last update', async () => {
    const at = (age: string) => (age === 'old' ? old : now);
    const ids = { accountId: 'acme', botId: 'bot-1', document: {} };
    for (const age of ['old', 'new']) {
      const version = at(age).getTime() * 1_000;
      await insertRows(database.pool, 'conversations', [{ ...ids, sessionId: age, version }]);
      const run = { ...ids, runId: age, suiteName: 'suite', isCompleted: true, version };
      await insertRows(database.pool, 'test_runs', [{ ...run, updatedAt: at(age) }]);
    }

    expect(await purgeHistory(database, limit)).toBe(2);

    expect(await rowsIn(database.pool, 'conversations')).toMatchObject([{ session_id: 'new' }]);
    expect(await rowsIn(database.pool, 'test_runs')).toMatchObject([{ run_id: 'new' }]);
  });

  test('keeps delivery attempts for 7 days and idempotency keys until they expire', async () => {
    clock = now;
    await addAttempt('call-1', new Date(now.getTime() - 7 * dayMs - 1));
    await addAttempt('call-1', new Date(now.getTime() - 7 * dayMs + 1));
    const key = { appId: 'a', botId: 'b', requestHash: 'h', callId: 'c', answer: {} };
    await insertRows(database.pool, 'idempotency_keys', [
      { ...key, key: 'expired', expiresAt: new Date(now.getTime() - 1) },
      { ...key, key: 'live', expiresAt: new Date(now.getTime() + 1) },
    ]);

    await ledger.purge(limit);

    expect(await counts()).toMatchObject({ attempts: 1 });
    expect(await rowsIn(database.pool, 'idempotency_keys')).toMatchObject([{ key: 'live' }]);
  });
});
