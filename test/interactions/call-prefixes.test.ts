// Finds calls by the beginning of their ids among many others. The number of rows that the database
// reads does not grow with the number of stored calls.

import type { Pool } from 'pg';
import { describe, expect, test } from 'vitest';
import type { AppScope, CallScope } from '../../src/interactions/call-queries.ts';
import { createCallQueries } from '../../src/interactions/stored-calls.ts';
import type { Database } from '../../src/store/database.ts';
import type { Queries } from '../../src/store/queries.ts';
import type { Reads } from '../../src/store/reads.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';

type Statement = Parameters<Queries['query']>[0];
type Blocks = { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number };
type Explained = { readonly 'QUERY PLAN': readonly { readonly Plan: Blocks }[] };

/** The whole table takes some hundreds of blocks. */
const fewBlocks = 100;
const calls = 6_000;

async function fill(pool: Pool): Promise<void> {
  await pool.query(`
    insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status, accepted_at, dial_before)
    select 'call-' || md5(n::text)::uuid, n, n, case when n % 2 = 0 then 'acme' else 'rival' end, 'app', 'bot-' || n % 6,
      jsonb_build_object('target', jsonb_build_object('kind', 'tel', 'number', '12025550100'), 'caller', '1',
        'machineDetection', 'detect', 'metadata', jsonb_build_object('note', repeat('x', 300))),
      'ended', 'completed', now() - n * interval '1 second', now()
    from generate_series(1, ${calls}) n`);
}

const scopes: readonly (CallScope | AppScope)[] = [
  { accountId: 'acme', botId: 'bot-0' },
  { accountId: 'acme', botIds: 'all' },
  { accountId: 'acme', botIds: ['bot-0', 'bot-2'] },
];

/** Returns the reads of an account on `database`, and a record of its statements. */
function watched(database: Pick<Database, 'pool' | 'reads'>) {
  const statements: Statement[] = [];
  const reads: Reads = (accountId) => ({
    query: async (statement, values) => {
      statements.push(statement);
      return await database.reads(accountId).query(statement, values);
    },
  });
  return { pool: database.pool, reads, statements };
}

async function blocksReadBy(pool: Pool, statement: Statement): Promise<number> {
  const { text, values = [] } = typeof statement === 'string' ? { text: statement } : statement;
  const { rows } = await pool.query<Explained>(
    `explain (analyze, buffers, format json) ${text}`,
    values,
  );
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  return (plan?.['Shared Hit Blocks'] ?? Number.NaN) + (plan?.['Shared Read Blocks'] ?? Number.NaN);
}

describe.each(databaseKinds)('a prefix on %s', (kind) => {
  test('is looked up in the index, for a bot and for an app', async () => {
    await using database = await openTestDatabase(kind);
    await fill(database.pool);
    // A gateway's tables have statistics. Without them, the planner guesses.
    await database.pool.query('analyze calls');
    const { statements, ...reading } = watched(database);
    const queries = createCallQueries(reading);
    const { rows } = await database.pool.query<{ call_id: string }>(
      `select call_id from calls where account_id = 'acme' and bot_id = 'bot-0' order by call_id limit 1 offset 300`,
    );
    const callId = rows[0]?.call_id ?? '';
    const found = async (scope: CallScope | AppScope, callIdPrefix: string) => {
      const page = await queries.list(scope, { limit: 11, callIdPrefix });
      return page === 'bad-cursor' ? [] : page.calls.map((call) => call.callId);
    };

    for (const scope of scopes) {
      for (const length of [4, 8, 36]) {
        const prefix = callId.slice(0, 'call-'.length + length);
        expect(await found(scope, prefix)).toContain(callId);
      }
    }

    // One statement finds the calls, and another one reads them.
    expect(statements).toHaveLength(18);
    for (const statement of statements) {
      expect(await blocksReadBy(database.pool, statement)).toBeLessThan(fewBlocks);
    }
  });
});
