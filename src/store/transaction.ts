// One transaction on a connection of its own.

import type { Pool, PoolClient } from 'pg';
import { isUnreachable } from './sql-errors.ts';

/** `work` must ask nothing but its client: the embedded database has one connection. */
export async function inTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    // Its server does not answer, or only reads: the next transaction would fail there, too.
    if (isUnreachable(error)) failure = new Error('the database is away', { cause: error });
    await client.query('rollback').catch((cause: unknown) => {
      failure = new Error('a transaction could not be rolled back', { cause });
    });
    throw error;
  } finally {
    // A client that may be inside a transaction is not used again.
    client.release(failure);
  }
}
