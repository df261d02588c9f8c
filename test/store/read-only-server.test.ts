// A read-only server, as during a fail-over, counts as unreachable.

import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { checkWritable, type Database, openDatabase } from '../../src/store/database.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import { isCertainlyUndone, isUnreachable } from '../../src/store/sql-errors.ts';
import { inTransaction } from '../../src/store/transaction.ts';
import { acceptedCall } from '../support/call-records.ts';
import { eventually } from '../support/eventually.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';
import { startPostgres } from '../support/postgres-server.ts';

const causeOf = (failing: Promise<unknown>): Promise<unknown> =>
  failing.then(
    () => undefined,
    (error: unknown) => error,
  );

async function asks(database: Pick<Database, 'pool'>): Promise<boolean> {
  return await database.pool.query('select 1').then(
    () => true,
    () => false,
  );
}

describe('a primary that was made read-only', () => {
  let database: Database;

  const server = forSuite(startPostgres);
  beforeAll(async () => {
    // `openDatabase` waits while the server starts.
    database = await openDatabase({
      ...{ databaseUrl: server.url, dataDir: '/nonexistent', logger: silentLogger },
    });
  });
  afterAll(() => database.close());

  async function beReadOnly(isOn: boolean): Promise<void> {
    await database.pool.query(
      `alter system set default_transaction_read_only = ${isOn ? 'on' : 'off'}`,
    );
    await database.pool.query('select pg_reload_conf()');
    const expected = isOn ? 'on' : 'off';
    await eventually(async () => {
      const { rows } = await database.pool.query<{ value: string }>(
        `select current_setting('default_transaction_read_only') as value`,
      );
      return rows[0]?.value === expected;
    }, `it is ${expected}`);
  }

  const ledgerOf = () => openLedger(database);
  const keyed = (key: string) => ({ idempotency: { key, requestHash: 'hash' } });

  test('reports that no call was stored, knows earlier keys, and accepts calls again afterwards', async () => {
    const ledger = ledgerOf();
    const earlier = acceptedCall();
    expect(await ledger.accept(earlier, keyed('earlier'))).toEqual({ kind: 'accepted' });
    await beReadOnly(true);

    expect(await ledger.accept(acceptedCall(), {})).toMatchObject({ kind: 'not-stored' });
    const limited = await ledger.accept(acceptedCall(), { limits: { callsAtOnce: 5 } });
    expect(limited).toMatchObject({ kind: 'not-stored' });
    expect(await ledger.accept(acceptedCall(), keyed('new'))).toMatchObject({
      ...{ kind: 'not-stored', isKeyNew: true },
    });
    expect(await ledger.accept(acceptedCall(), keyed('earlier'))).toMatchObject({
      ...{ kind: 'replayed', answer: { callId: earlier.callId } },
    });

    await beReadOnly(false);
    expect(await ledger.accept(acceptedCall(), keyed('new'))).toEqual({ kind: 'accepted' });
  });

  test('counts as unreachable, and the pool closes its connections', async () => {
    const nodes = createNodeStore(database, 'a/1', 60_000);
    await beReadOnly(true);
    try {
      const { pool, leasePool } = database;
      const failures = [
        await causeOf(checkWritable(pool)),
        await causeOf(nodes.renew({ calls: 0, draining: false })),
        await causeOf(inTransaction(pool, (client) => client.query('delete from nodes'))),
      ];

      expect(failures.map((error) => [isUnreachable(error), isCertainlyUndone(error)])).toEqual(
        failures.map(() => [true, true]),
      );
      expect([pool.totalCount, leasePool.totalCount]).toEqual([0, 0]);
    } finally {
      await beReadOnly(false);
    }
    await checkWritable(database.pool);
  });
});

test('a standby counts as unreachable, although it can be read', async () => {
  const server = await startPostgres({ standby: true });
  const pool = new Pool({ connectionString: server.url, max: 1 });
  // Closed connections may still get an error when the server ends.
  pool.on('error', () => undefined);
  try {
    await eventually(() => asks({ pool }), 'it answers');
    const { rows } = await pool.query('select pg_is_in_recovery() as is_standby');
    expect(rows).toEqual([{ is_standby: true }]);

    expect(isUnreachable(await causeOf(checkWritable(pool)))).toBe(true);
    expect(pool.totalCount).toBe(0);
  } finally {
    await pool.end();
    await server.stop();
  }
});
