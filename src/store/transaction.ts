// Runs one transaction on its own connection.

import type { Pool, PoolClient } from 'pg';
import { isUnreachable } from './sql-errors.ts';

/**
 * Runs `work` in a transaction. `work` must send all its queries through the client that it
 * receives. With the embedded database there's only one connection, so any other query would wait
 * forever.
 */
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
    // The server doesn't respond or is read-only, so the next transaction would fail on this
    // connection too.
    if (isUnreachable(error)) failure = new Error('the database is unreachable', { cause: error });
    await client.query('rollback').catch((cause: unknown) => {
      failure = new Error('a transaction could not be rolled back', { cause });
    });
    throw error;
  } finally {
    // Passing the error discards the client, which may still be inside a transaction.
    client.release(failure);
  }
}
