// Reads by clients, concurrent with the statements of calls and leases.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNodeStore } from '../../src/store/nodes.ts';
import {
  createReads,
  pgliteReads,
  postgresReads,
  ReadRefusedError,
} from '../../src/store/reads.ts';
import { openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';

const refused = (results: readonly PromiseSettledResult<unknown>[]): number =>
  results.filter(({ status }) => status === 'rejected').length;

describe('on PostgreSQL', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await openTestDatabase('postgres');
  });
  afterEach(() => database.remove());

  /** Returns the number of database sessions that wait for a lock. */
  async function waiting(): Promise<number> {
    const { rows } = await database.pool.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count ?? 0;
  }

  test('an account that reads continuously delays neither calls nor the lease nor other accounts', async () => {
    const { pool, reads } = database;
    const node = createNodeStore(database, 'a/1', 8_000);
    await node.register({ nodeId: 'a', version: '1', questionKey: 'key' });
    const holder = await pool.connect();
    await holder.query('begin');
    await holder.query('lock table sounds');
    const count = postgresReads.running + postgresReads.waiting + 10;
    const greedy = Promise.allSettled(
      Array.from({ length: count }, () => reads('greedy').query('select from sounds')),
    );
    await eventually(async () => (await waiting()) === postgresReads.running, 'its share waits');

    expect(await node.renew({ calls: 0, draining: false })).toBe(true);
    expect(await reads('modest').query('select 1 as one')).toMatchObject({ rows: [{ one: 1 }] });
    expect(await waiting()).toBe(postgresReads.running);
    await holder.query('commit');
    holder.release();
    expect(refused(await greedy)).toBe(10);
  });

  test('refuses a read that takes too long with a message, and serves the next one', async () => {
    const { pool } = database;
    const holder = await pool.connect();
    await holder.query('begin');
    await holder.query('lock table sounds');
    const slow = { text: 'select from sounds', query_timeout: 50 };
    const reading = createReads(pool, postgresReads)('acme');

    await expect(reading.query(slow)).rejects.toThrow(ReadRefusedError);
    await expect(reading.query(slow)).rejects.toThrow('took too long and was stopped');
    await holder.query('commit');
    holder.release();
    await reading.query('select from sounds');
  });

  test('the server itself ends a read after 5 s', async () => {
    const { rows } = await database.reads('acme').query('show statement_timeout');

    expect(rows).toEqual([{ statement_timeout: '5s' }]);
  });
});

test('on PGlite, reads run one after the other, a bounded number waits, and calls run in between', async () => {
  await using database = await openTestDatabase('pglite');
  const { pool, reads } = database;
  const order: string[] = [];
  const holder = await pool.connect();
  const count = pgliteReads.running + pgliteReads.waiting;
  const all = Promise.allSettled(
    Array.from({ length: count + 5 }, async (_, index) => {
      await reads(`account-${index % 3}`).query('select 1');
      order.push('read');
    }),
  );
  const call = pool.query('select 1').then(() => order.push('call'));
  holder.release();
  await call;
  const results = await all;

  expect(refused(results)).toBe(5);
  expect(order.indexOf('call')).toBeLessThanOrEqual(1);
  expect(order).toHaveLength(count + 1);
});
