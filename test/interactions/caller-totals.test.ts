// Calls by caller ID, on both databases.

import { afterEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { AppScope, CallScope } from '../../src/interactions/call-queries.ts';
import { maxCallers, summarizeCallers } from '../../src/interactions/caller-totals.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Settling } from '../../src/store/outbox/settling.ts';
import { purgeExpired } from '../../src/store/retention.ts';
import { someIdentity } from '../support/call-events.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';

const ofAccount = { accountId: 'acme', botIds: 'all' } as const;

describe.each(databaseKinds)('calls by caller ID on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  afterEach(() => database.clear());

  async function ended(caller: string, outcome: string, changes: object = {}): Promise<CallId> {
    const acceptedAt = new Date('2026-11-24T08:07:00Z');
    const identity = someIdentity();
    const row = {
      ...{ ...identity, request: { ...acceptedCall().request, caller }, trunk: 'carrier' },
      ...{ ownerId: 'a', state: 'ended', status: 'completed', outcome, acceptedAt },
      ...{ dialBefore: acceptedAt, endedAt: acceptedAt, ...changes },
    };
    await insertRows(database.pool, 'calls', [row]);
    return identity.callId;
  }

  async function settle(callIds: readonly CallId[]): Promise<void> {
    const settling = new Settling(database.pool, 'a', () => false, silentLogger);
    for (const callId of callIds) settling.settle(callId);
    await settling.stop();
  }

  const day = { from: new Date('2026-11-24T00:00:00Z'), to: new Date('2026-11-25T00:00:00Z') };
  const sum = (scope: CallScope | AppScope = ofAccount, period = day) =>
    summarizeCallers(database.pool, scope, { ...period, timeZone: 'UTC', withDays: false });

  test('count each call once, settled or not, with the most blocked caller ID first', async () => {
    const calls = [
      await ended('15550000001', 'completed', { answeredAt: new Date('2026-11-24T08:07:00Z') }),
      await ended('+15550000001', 'busy'),
      await ended('15550000001', 'busy'),
      await ended('15550000002', 'blocked'),
      await ended('15550000002', 'busy', { acceptedAt: new Date('2026-11-24T23:59:59.999Z') }),
      await ended('15550000002', 'busy', { acceptedAt: new Date('2026-11-25T00:00:00Z') }),
      await ended('15550000003', 'blocked', { accountId: 'rival' }),
    ];
    const expected = [
      { caller: '15550000002', accepted: 2, answered: 0, short: 0, blocked: 1, blockedShare: 0.5 },
      { caller: '15550000001', accepted: 3, answered: 1, short: 1, blocked: 0, blockedShare: 0 },
    ];

    expect((await sum()).callers).toEqual(expected);
    await settle(calls.slice(0, 4));
    expect((await sum()).callers).toEqual(expected);
    await settle(calls);
    await settle(calls);
    expect(await sum()).toEqual({
      from: '2026-11-24T00:00:00.000Z',
      to: '2026-11-25T00:00:00.000Z',
      timeZone: 'UTC',
      callers: expected,
    });
    const quarter = {
      from: new Date('2026-11-24T08:00:00Z'),
      to: new Date('2026-11-24T08:15:00Z'),
    };
    expect((await sum(ofAccount, quarter)).callers.map(({ accepted }) => accepted)).toEqual([1, 3]);
  });

  test('are by day on request', async () => {
    const period = { from: new Date('2026-11-22T23:00:00Z'), to: new Date('2026-11-25T23:00:00Z') };
    const late = { acceptedAt: new Date('2026-11-24T23:00:00Z') };
    await settle([
      await ended('15550000001', 'blocked'),
      await ended('15550000001', 'busy', late),
      await ended('15550000002', 'busy', late),
    ]);
    await ended('15550000001', 'busy', late);

    const { callers } = await summarizeCallers(database.pool, ofAccount, {
      ...{ ...period, timeZone: 'Europe/Berlin', withDays: true },
    });

    const counts = { answered: 0, short: 0, blocked: 0 };
    expect(callers).toMatchObject([
      {
        ...{ caller: '15550000001', accepted: 3, blocked: 1 },
        days: [
          { day: '2026-11-24', accepted: 1, ...counts, blocked: 1 },
          { day: '2026-11-25', accepted: 2, ...counts },
        ],
      },
      { caller: '15550000002', days: [{ day: '2026-11-25', accepted: 1 }] },
    ]);
  });

  test('are those of the scope', async () => {
    await settle([
      await ended('15550000001', 'busy', { botId: 'bot-1' }),
      await ended('15550000001', 'blocked', { botId: 'bot-2' }),
    ]);
    expect((await sum({ accountId: 'acme', botId: 'bot-1' })).callers).toMatchObject([
      { accepted: 1, blocked: 0 },
    ]);
    expect((await sum({ accountId: 'acme', botIds: ['bot-2'] })).callers).toMatchObject([
      { accepted: 1, blocked: 1 },
    ]);
  });

  test('are bounded', async () => {
    await database.pool.query(
      `insert into caller_totals (account_id, slot, caller, bot_id, calls, answered, short, blocked)
       select 'acme', '2026-11-24T08:00:00Z', n::text, 'bot-1', 1, 0, 0, 0 from generate_series(1, $1::integer) n`,
      [maxCallers + 1],
    );
    const { callers, more } = await sum();
    expect(callers).toHaveLength(maxCallers);
    expect(more).toBe(true);
  });

  test('are kept for 31 days', async () => {
    await settle([await ended('15550000001', 'blocked')]);
    const purge = (now: string) =>
      purgeExpired(database, silentLogger, { before: new Date(0), now: new Date(now) });
    await purge('2026-12-25T07:00:00Z');
    expect((await sum()).callers).toHaveLength(1);
    await purge('2026-12-26T09:00:00Z');
    expect((await sum()).callers).toHaveLength(0);
  });
});
