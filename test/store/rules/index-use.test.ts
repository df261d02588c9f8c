// What the calling rules ask the database uses indexes. No statement reads a whole table that grows
// with an account's calls or with its suppressions.

import type { Pool, PoolClient } from 'pg';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/lib/logger.ts';
import { releaseHeld, releaseSuppressed } from '../../../src/store/rules/held-calls.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { createSuppressedCalls } from '../../../src/store/rules/suppressed-calls.ts';
import { createSuppressionCheck } from '../../../src/store/rules/suppression-check.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

/** An account's past: settled calls, calls that wait for a rule, numbers and suppressions. */
const past = `
insert into suppressions (account_id, address, reason, source, created_at, app_id)
select 'account-1', '+1808' || lpad(n::text, 7, '0'), 'opt-out', 'test', now(), 'app-1'
from generate_series(1, 5000) n;
insert into called_numbers (account_id, number, call_ids, attempted_at, used_at)
select 'account-1', '+1602' || lpad(n::text, 7, '0'), '{}', '{}', now() from generate_series(1, 5000) n;
insert into call_records (account_id, accepted_at, call_id, app_id, bot_id, number, caller, ended_at, outcome)
select 'account-1', now() - n * interval '1 min', 'past-' || n, 'app-1', 'bot-1',
  '1602' || lpad(n::text, 7, '0'), '1', now(), 'completed' from generate_series(1, 5000) n;
insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, trunk, state, status,
  accepted_at, dial_before, dial_started_at, ended_at, end_published_at, not_before, waits_for)
select c.call_id || n, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id,
  jsonb_set(request, '{target,number}', to_jsonb('1602' || lpad(n::text, 7, '0'))), c.trunk, 'ended', 'ended',
  now() - n * interval '1 min', now() + interval '1 day', case when n > 50 then now() end,
  case when n > 50 then now() end, case when n > 50 then now() end,
  case when n <= 50 then now() + interval '1 hour' end, case when n <= 50 then 'hours' end
from calls c, generate_series(1, 5000) n;
analyze;`;

const grown = ['calls', 'call_records', 'called_numbers', 'suppressions'];

describe.each(databaseKinds)('calling rules on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });

  test('read no table as a whole', async () => {
    const { pool } = rig.database;
    const clock = { now: () => new Date() };
    await createRuleSetStore({ database: rig.database, clock }).put('account-1', 'default', {
      document: {
        attempts: [{ most: 9, within: '24h' }],
        abandoned: { formula: 'ftc', most: 3, allow: 0, hold: true },
      },
      appId: 'app-1',
    });
    const call = acceptedCall({ acceptedAt: new Date() });
    const request = { ...call.request, campaign: 'spring', machineDetection: 'detect' as const };
    await rig.ledger.accept({ ...call, request }, {});
    await pool.query(past);
    const scanned = async (
      work: (watched: Pool) => Promise<unknown>,
    ): Promise<readonly string[]> => {
      const found: string[] = [];
      await work(watching(pool, found));
      return found;
    };
    const takeOne = async (watched: Pool) => {
      const { grants } = await takesOf(watched, 'a/1').take({
        ...{ takeId: 1, isRepeated: false, source: 'sandbox', wanted: 10, horizonMs: 200 },
        limits: { maxConcurrentCalls: 100 },
      });
      expect(grants).toMatchObject([{ call: { isRuled: true } }]);
    };
    const reach = (watched: Pool) =>
      createSuppressionCheck(watched, silentLogger).reach('account-1', request.target);
    const suppression = new Map([['+18085550100', { reason: 'opt-out', source: 'test' } as const]]);
    const put = (watched: Pool) =>
      createSuppressions({ ...rig.database, pool: watched }).put(
        { accountId: 'account-1', appId: 'app-1' },
        suppression,
      );
    const ringing = (watched: Pool) =>
      createSuppressedCalls(watched).ringing('account-1', '+18085550100');

    expect({
      take: await scanned(takeOne),
      reach: await scanned(reach),
      put: await scanned(put),
      ringing: await scanned(ringing),
      releaseNumber: await scanned((watched) =>
        releaseSuppressed(watched, 'account-1', '16020000001'),
      ),
      releaseAll: await scanned((watched) => releaseHeld(watched, 'account-1')),
    }).toEqual({ take: [], reach: [], put: [], ringing: [], releaseNumber: [], releaseAll: [] });
  });
});

/** Runs each statement in a transaction that then says which tables it has read as a whole. */
function watching(pool: Pool, found: string[]): Pool {
  const connect = async () => {
    const client = await pool.connect();
    let before: Scans = new Map();
    return {
      query: async (...sent: [never, never]): Promise<unknown> => {
        if ((sent[0] as unknown) === 'commit') found.push(...addedTo(before, await scans(client)));
        const result: unknown = await client.query(...sent);
        if ((sent[0] as unknown) === 'begin') before = await scans(client);
        return result;
      },
      release: (error?: Error) => client.release(error),
    };
  };
  const query = async (...sent: [never, never]): Promise<unknown> => {
    const client = await connect();
    try {
      await client.query('begin' as never, undefined as never);
      const result: unknown = await client.query(...sent);
      await client.query('commit' as never, undefined as never);
      return result;
    } finally {
      client.release();
    }
  };
  return { query, connect } as unknown as Pool;
}

/** How often each table has been read as a whole. */
type Scans = ReadonlyMap<string, number>;

/**
 * Includes what earlier transactions of the connection did within the last second, because
 * PostgreSQL passes its statistics on no more often than that.
 */
async function scans(client: PoolClient): Promise<Scans> {
  const { rows } = await client.query<{ relname: string; count: number }>(
    `select relname, seq_scan::integer as count from pg_stat_xact_user_tables
     where relname = any($1)`,
    [grown],
  );
  return new Map(rows.map(({ relname, count }) => [relname, count]));
}

function addedTo(before: Scans, after: Scans): readonly string[] {
  return [...after].flatMap(([name, count]) => (count > (before.get(name) ?? 0) ? [name] : []));
}
