// The connections of a pool to PostgreSQL: how long they live, and which are replaced sooner.

import type { Pool, PoolClient } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import {
  openPostgresPool,
  replaceSilentConnections,
} from '../../src/store/postgres/postgres-pool.ts';
import { isCertainlyUndone, isUnreachable } from '../../src/store/sql-errors.ts';
import { makeTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/postgres-server.ts';
import { layDatabaseWire, through } from '../support/wire.ts';

function openPool(connectionString: string): Pool {
  const pool = openPostgresPool({ connectionString }, silentLogger, { max: 4 });
  onTestFinished(() => pool.end());
  return pool;
}

async function newUrl(): Promise<string> {
  const { databaseUrl = '' } = await makeTestDatabase('postgres');
  return databaseUrl;
}

/** Opens all connections at the same time, and returns the ids of their processes. */
async function openAll(pool: Pool): Promise<readonly number[]> {
  const clients: PoolClient[] = [];
  for (let count = 0; count < 4; count += 1) clients.push(await pool.connect());
  const pids: number[] = [];
  for (const client of clients) {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    pids.push(rows[0]?.pid ?? 0);
    client.release();
  }
  return pids;
}

describe('a connection', () => {
  test('lives four to five minutes, and never as long as another one', async () => {
    const pool = openPool(await newUrl());
    const lifetimes: number[] = [];
    pool.on('connect', () => lifetimes.push(pool.options.maxLifetimeSeconds ?? 0));

    await openAll(pool);

    expect(new Set(lifetimes).size).toBe(4);
    expect(Math.min(...lifetimes)).toBeGreaterThanOrEqual(240);
    expect(Math.max(...lifetimes)).toBeLessThanOrEqual(300);
  });

  test('that is read-only is replaced soon, because its session stays so', async () => {
    const url = await newUrl();
    const [, name = ''] = /\/(\w+)\?/.exec(url) ?? [];
    const admin = openPool(url);
    await admin.query(`alter database ${name} set default_transaction_read_only = on`);
    const pool = openPool(url);
    const isReadOnly = async (): Promise<boolean> => {
      const { rows } = await pool.query<{ value: string }>(
        `select current_setting('transaction_read_only') as value`,
      );
      return rows[0]?.value === 'on';
    };
    expect(await isReadOnly()).toBe(true);

    await admin.query(`alter database ${name} reset default_transaction_read_only`);

    await eventually(async () => !(await isReadOnly()), 'a new session is writable');
  });

  test('to a standby is never handed out', async () => {
    const server = await startPostgres({ standby: true });
    onTestFinished(() => server.stop());
    const pool = openPool(server.url);
    let failure: unknown;
    const ask = async (): Promise<string> =>
      await pool.query('select 1').then(
        () => 'an answer',
        (error: unknown) => {
          failure = error;
          return (error as Error).message;
        },
      );

    // At first, the server is still starting.
    await eventually(async () => (await ask()) === 'the server is a standby', 'it is refused');

    expect([isUnreachable(failure), isCertainlyUndone(failure)]).toEqual([true, true]);
    expect(pool.totalCount).toBe(0);
  });
});

test('if a server goes silent, the idle connections of all pools are replaced', async () => {
  const url = await newUrl();
  const wire = await layDatabaseWire(url);
  onTestFinished(() => wire.close());
  const pools = [openPool(through(url, wire)), openPool(through(url, wire))] as const;
  replaceSilentConnections(pools, silentLogger);
  const before = [...(await openAll(pools[0])), ...(await openAll(pools[1]))];

  wire.muteSenderOf('unanswered');
  const unanswered = { text: `select 'unanswered'`, query_timeout: 10 };
  await expect(pools[0].query(unanswered)).rejects.toThrow('Query read timeout');

  await eventually(() => pools.every((pool) => pool.totalCount === 0), 'all are closed');
  const after = [...(await openAll(pools[0])), ...(await openAll(pools[1]))];
  expect(after.filter((pid) => before.includes(pid))).toEqual([]);
});
