// Indexes on tables that other nodes write meanwhile. `create index` would have every one of them wait until it is built: minutes on a
// large table, in which no answered call could be stored. Built concurrently, only this start waits.

import type { Pool, PoolClient } from 'pg';
import type { Logger } from '../../lib/logger.ts';
import type { LateIndex } from './migration.ts';

/** Beside that of the migrations, which a node that starts meanwhile must not wait for. */
const lockKey = '31366214770880364';
/** It waits for every older transaction of the database, also another program's: one that never ends must not keep us from starting. */
const longestBuildMs = 1_800_000;

/** Builds those that are missing, and those whose build was broken off, unless another node does. */
export async function buildLateIndexes(
  pool: Pool,
  logger: Logger,
  indexes: readonly LateIndex[],
): Promise<void> {
  const client = await pool.connect();
  try {
    const missing: LateIndex[] = [];
    for (const index of indexes) if (!(await isBuilt(client, index))) missing.push(index);
    if (missing.length === 0 || !(await takeLock(client))) return;
    await client.query(`set statement_timeout = ${longestBuildMs}; set lock_timeout = 0`);
    for (const index of missing) await build(client, logger, index);
  } finally {
    // With what was set for it, and the lock.
    client.release(true);
  }
}

async function build(client: PoolClient, logger: Logger, index: LateIndex): Promise<void> {
  // Another node may have built it just before.
  if (await isBuilt(client, index)) return;
  logger.info({ index: index.name }, 'an index is built, which may take minutes on a large table');
  try {
    await slow(client, `drop index concurrently if exists ${index.name}`);
    await slow(client, `create index concurrently ${index.name} on ${index.on}`);
  } catch (error) {
    // Everything works without it, more slowly.
    logger.warn(
      { err: error, index: index.name },
      'an index was not built: the next start tries again',
    );
  }
}

/** The pool's own time-out is for statements that are small. */
async function slow(client: PoolClient, text: string): Promise<void> {
  const query = { text, query_timeout: longestBuildMs + 5_000 };
  await client.query(query);
}

async function isBuilt(client: PoolClient, { name }: LateIndex): Promise<boolean> {
  const { rowCount } = await client.query(
    'select from pg_index where indexrelid = to_regclass($1) and indisvalid',
    [name],
  );
  return rowCount === 1;
}

async function takeLock(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>(
    `select pg_try_advisory_lock(${lockKey}) as taken`,
  );
  return rows[0]?.taken === true;
}
