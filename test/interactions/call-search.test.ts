// Searches among many calls. Following the cursors gives the same calls as a scan of the table
// would, for every filter, and however little each request may examine.

import type { Pool } from 'pg';
import { describe, expect, test } from 'vitest';
import { callOutcomes } from '../../src/calls/contract/call-words.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { AppScope, CallFilter, CallScope } from '../../src/interactions/call-queries.ts';
import { findCalls, type SearchBounds } from '../../src/interactions/call-search.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Settling } from '../../src/store/outbox/settling.ts';
import type { Queries } from '../../src/store/queries.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';

const calls = 400;
const newest = new Date('2026-11-24T12:00:00.000Z');

/**
 * Stores calls of two accounts and several bots, two minutes apart. Many were accepted at the same
 * time. The newest are waiting or up, some have ended and are not settled, all others are settled.
 */
async function fill(pool: Pool): Promise<void> {
  await pool.query(
    `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, trunk, idempotency_key, request,
       owner_id, state, status, outcome, verdict, accepted_at, dial_before, answered_at, ended_at)
     select 'call-' || md5(n::text)::uuid, n, n, case when n % 7 = 0 then 'rival' else 'acme' end, 'app', 'bot-' || n % 3,
       'carrier', case when n % 50 = 1 then 'key-' || n % 100 end,
       jsonb_build_object('target', case n % 4
           when 0 then jsonb_build_object('kind', 'sip', 'user', '+1202555' || 1000 + n % 40, 'host', 'pbx.example')
           when 1 then jsonb_build_object('kind', 'sip', 'user', 'bob', 'host', 'pbx.example')
           else jsonb_build_object('kind', 'tel', 'number', '1202555' || 1000 + n % 40) end,
         'caller', '1', 'machineDetection', 'detect', 'metadata', jsonb_build_object('orderId', n % 90, 'tier', 'gold')) ||
         case when n % 5 = 0 then jsonb_build_object('campaign', 'c' || n % 15) else '{}' end,
       'a',
       case when n <= 20 then (array['queued', 'dialing', 'ringing', 'answered'])[1 + n % 4] else 'ended' end,
       case when n <= 20 then (array['queued', 'dialing', 'ringing', 'answered'])[1 + n % 4]
         when n % 3 = 0 then 'failed' else 'completed' end,
       case when n <= 20 then null when n % 150 = 149 then 'expired' when n % 3 = 0 then 'busy' else 'completed' end,
       case when n <= 20 or n % 3 = 0 then null when n % 2 = 0 then 'amd_human_detected' else 'amd_machine_detected' end,
       $1::timestamptz - (n / 4) * interval '8 minutes', $1, case when n % 3 = 0 then null else $1::timestamptz end,
       case when n <= 20 then null else $1::timestamptz end
     from generate_series(1, ${calls}) n`,
    [newest],
  );
  const { rows } = await pool.query<{ call_id: CallId }>(
    `select call_id from calls where ended_at is not null and sid::integer % 11 > 0`,
  );
  await settle(
    pool,
    rows.map((row) => row.call_id),
  );
  await pool.query('analyze calls');
  await pool.query('analyze call_totals');
}

async function settle(pool: Pool, callIds: readonly CallId[]): Promise<void> {
  const settling = new Settling(pool, 'a', () => false, silentLogger);
  for (const callId of callIds) settling.settle(callId);
  await settling.stop();
}

/** Turns ended calls into unsettled ones with another outcome. Returns their ids. */
async function reject(pool: Pool, numbers: readonly number[]): Promise<readonly CallId[]> {
  const { rows } = await pool.query<{ call_id: CallId }>(
    `with rejected as (
       update calls set outcome = 'rejected', end_published_at = null
       where sid::integer = any($1) returning sid, call_id)
     select call_id from rejected order by sid::integer`,
    [numbers],
  );
  return rows.map((row) => row.call_id);
}

type Condition = { readonly filter: Partial<CallFilter>; readonly sql: string };

const number = `coalesce(request #>> '{target,number}', ltrim(request #>> '{target,user}', '+'))`;
const conditions: readonly Condition[] = [
  { filter: {}, sql: 'true' },
  { filter: { state: 'queued' }, sql: `state = 'queued'` },
  { filter: { state: 'ended' }, sql: `state = 'ended'` },
  { filter: { status: 'answered' }, sql: `status = 'answered'` },
  { filter: { status: 'failed' }, sql: `status = 'failed'` },
  { filter: { status: 'machineDetected' }, sql: 'false' },
  { filter: { outcome: 'busy' }, sql: `outcome = 'busy'` },
  { filter: { outcome: 'expired' }, sql: `outcome = 'expired'` },
  { filter: { outcome: 'bot-failure' }, sql: 'false' },
  { filter: { verdict: 'amd_machine_detected' }, sql: `verdict = 'amd_machine_detected'` },
  { filter: { verdict: 'amd_error' }, sql: 'false' },
  { filter: { number: '12025551002' }, sql: `${number} = '12025551002'` },
  { filter: { number: '12025559999' }, sql: 'false' },
  { filter: { campaign: 'c5' }, sql: `request ->> 'campaign' = 'c5'` },
  { filter: { campaign: 'none' }, sql: 'false' },
  { filter: { metadata: { orderId: '17' } }, sql: `request -> 'metadata' ->> 'orderId' = '17'` },
  { filter: { metadata: { orderId: '1', tier: 'lead' } }, sql: 'false' },
  { filter: { idempotencyKey: 'key-51' }, sql: `idempotency_key = 'key-51'` },
  { filter: { callIdPrefix: 'call-c4ca' }, sql: `call_id like 'call-c4ca%'` },
  {
    filter: { outcome: 'busy', verdict: 'amd_human_detected' },
    sql: 'false',
  },
  {
    filter: { campaign: 'c0', outcome: 'busy', metadata: { tier: 'gold' } },
    sql: `request ->> 'campaign' = 'c0' and outcome = 'busy'`,
  },
  { filter: { state: 'queued', outcome: 'busy' }, sql: 'false' },
];

const period = {
  filter: {
    acceptedFrom: new Date('2026-11-24T03:24:00.000Z'),
    acceptedTo: new Date('2026-11-24T11:52:00.000Z'),
  },
  sql: `accepted_at >= '2026-11-24T03:24:00Z' and accepted_at < '2026-11-24T11:52:00Z'`,
};

const inPeriod: readonly Condition[] = conditions.map(({ filter, sql }) => ({
  filter: { ...filter, ...period.filter },
  sql: `${period.sql} and ${sql}`,
}));

const scopes: readonly (readonly [scope: CallScope | AppScope, sql: string])[] = [
  [{ accountId: 'acme', botId: 'bot-0' }, `account_id = 'acme' and bot_id = 'bot-0'`],
  [{ accountId: 'acme', botIds: 'all' }, `account_id = 'acme'`],
  [
    { accountId: 'acme', botIds: ['bot-1', 'bot-2', 'bot-9'] },
    `account_id = 'acme' and bot_id in ('bot-1', 'bot-2')`,
  ],
  [{ accountId: 'acme', botIds: [] }, 'false'],
];

/** A request reads one small window. */
const tight: SearchBounds = { firstRows: 150, maxRows: 150, budgetMs: 0 };
const wide: SearchBounds = { firstRows: 500, maxRows: 10_000, budgetMs: 10_000 };
/** More pages than any search here needs, even if each of them examines few calls. */
const maxPages = 400;

async function follow(
  queries: Queries,
  scope: CallScope | AppScope,
  filter: CallFilter,
  bounds: SearchBounds,
) {
  const callIds: string[] = [];
  let cursor: string | undefined;
  let to = filter.acceptedTo?.toISOString();
  for (let pages = 1; pages <= maxPages; pages += 1) {
    const next = { ...filter, ...(cursor === undefined ? {} : { cursor }) };
    const page = await findCalls(queries, scope, next, bounds);
    if (page === 'bad-cursor') throw new Error('a cursor of ours is not accepted');
    callIds.push(...page.callIds);
    // The periods of the pages have no gap.
    expect(page.searched.to).toBe(to);
    to = page.searched.from;
    cursor = page.nextCursor;
    if (cursor === undefined) {
      expect(to).toBe(filter.acceptedFrom?.toISOString());
      return callIds;
    }
  }
  throw new Error('the list does not end');
}

describe.each(databaseKinds)('a search on %s', (kind) => {
  test('finds what a scan finds, for every filter, scope and bound', async () => {
    await using database = await openTestDatabase(kind);
    const { pool } = database;
    await fill(pool);
    for (const [scope, inScope] of scopes) {
      const isOfBot = 'botId' in scope;
      for (const { filter, sql } of isOfBot ? inPeriod : conditions) {
        const { rows } = await pool.query<{ call_id: string }>(
          `select call_id from calls where ${inScope} and ${sql} order by accepted_at desc, call_id desc`,
        );
        const expected = rows.map((row) => row.call_id);
        const label = JSON.stringify({ scope, filter });
        expect(await follow(pool, scope, { ...filter, limit: 200 }, tight), label).toEqual(
          expected,
        );
        expect(await follow(pool, scope, { ...filter, limit: 30 }, wide), label).toEqual(expected);
      }
    }
  });

  test('says at once that no call has an outcome, and examines few rows otherwise', async () => {
    await using database = await openTestDatabase(kind);
    await fill(database.pool);
    const scope = { accountId: 'acme', botIds: 'all' } as const;
    const absent = callOutcomes.filter((one) => !['busy', 'completed', 'expired'].includes(one));

    for (const outcome of absent) {
      const filter = { limit: 50, outcome };
      expect(await findCalls(database.pool, scope, filter, tight)).toEqual({
        ...{ callIds: [], searched: {} },
      });
    }
    const unknown = { limit: 50, metadata: { orderId: 'none' } };
    const page = await findCalls(database.pool, scope, unknown, tight);
    if (page === 'bad-cursor') throw new Error('no cursor was given');
    expect(page.callIds).toEqual([]);
    expect(page.nextCursor).toBeDefined();
    expect(page.searched.from).toMatch(/^2026-11-24/);
  });

  test('ends at the oldest call, although the totals go back further', async () => {
    await using database = await openTestDatabase(kind);
    const { pool } = database;
    await fill(pool);
    const acceptedTo = new Date(newest.getTime() - 6 * 3_600_000);
    await pool.query('delete from calls where accepted_at < $1', [acceptedTo]);
    const scope = { accountId: 'acme', botIds: 'all' } as const;

    const page = await findCalls(pool, scope, { limit: 50, outcome: 'busy', acceptedTo }, tight);

    expect(page).toEqual({ callIds: [], searched: { to: acceptedTo.toISOString() } });
  });

  test('fills a page, although further unsettled calls match', async () => {
    await using database = await openTestDatabase(kind);
    const { pool } = database;
    await fill(pool);
    await reject(pool, [300, 340, 380]);
    const settled = await reject(pool, [40, 80]);
    await settle(pool, settled);
    const scope = { accountId: 'acme', botIds: 'all' } as const;

    const page = await findCalls(pool, scope, { limit: 2, outcome: 'rejected' }, wide);

    expect(page).toMatchObject({ callIds: settled });
  });

  test('finds the open calls of a campaign without its ended ones', async () => {
    await using database = await openTestDatabase(kind);
    const { pool } = database;
    await fill(pool);
    await pool.query(`update calls set request = request || '{"campaign": "all"}'`);
    const { rows } = await pool.query<{ call_id: string }>(
      `select call_id from calls where account_id = 'acme' and state = 'dialing' order by accepted_at desc, call_id desc`,
    );
    const scope = { accountId: 'acme', botIds: 'all' } as const;

    for (const filter of [{ state: 'dialing' }, { status: 'dialing' }] as const) {
      expect(
        await findCalls(pool, scope, { limit: 50, campaign: 'all', ...filter }, tight),
      ).toEqual({ callIds: rows.map((row) => row.call_id), searched: {} });
    }
  });

  test('does not go on before the beginning of its period', async () => {
    await using database = await openTestDatabase(kind);
    await fill(database.pool);
    const acceptedFrom = new Date('2026-11-24T09:20:00.000Z');
    const scope = { accountId: 'acme', botIds: 'all' } as const;

    const page = await findCalls(
      database.pool,
      scope,
      { limit: 50, outcome: 'busy', acceptedFrom },
      tight,
    );

    expect(page).toMatchObject({ searched: { from: acceptedFrom.toISOString() } });
    expect(page).not.toHaveProperty('nextCursor');
  });
});
