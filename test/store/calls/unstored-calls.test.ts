// What a ledger reports if it did not store a call, and if it does not know whether the call was
// stored.

import { Pool, type PoolConfig } from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { acceptedCall } from '../../support/call-records.ts';
import { openTestDatabase } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import { openLedger } from '../../support/ledger.ts';
import { layDatabaseWire, through } from '../../support/wire.ts';

const pools: Pool[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.end())));

function ledgerOn(config: PoolConfig) {
  const pool = new Pool(config);
  // The gateway listens to these events, too.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  pools.push(pool);
  return openLedger({ kind: 'postgres', pool });
}

describe('a call is certainly not stored', () => {
  test.each<[string, () => Promise<PoolConfig>]>([
    ['PostgreSQL is down', async () => ({ host: '127.0.0.1', port: await freeUdpPort() })],
    ['PGlite is gone', async () => ({ host: '/nowhere/pglite' })],
  ])('if %s', async (_, configOf) => {
    const ledger = ledgerOn(await configOf());

    expect(await ledger.accept(acceptedCall(), {})).toMatchObject({ kind: 'not-stored' });
  });

  test('if no connection is free in time', async () => {
    await using database = await openTestDatabase('postgres');
    const connectionString = database.location.databaseUrl ?? '';
    const ledger = ledgerOn({ connectionString, max: 1, connectionTimeoutMillis: 50 });
    const [pool] = pools;
    const held = await pool?.connect();
    try {
      expect(await ledger.accept(acceptedCall(), {})).toMatchObject({ kind: 'not-stored' });
    } finally {
      held?.release();
    }
  });

  test('if too many calls wait to be stored', async () => {
    const ledger = ledgerOn({ host: '127.0.0.1', port: await freeUdpPort() });

    const results = await Promise.all(
      Array.from({ length: 5_001 }, () => ledger.accept(acceptedCall(), {})),
    );
    expect(results.at(-1)).toMatchObject({
      kind: 'not-stored',
      cause: new Error('batch queue is full (5000 waiting)'),
    });
  });
});

test.each([
  ['', {}],
  [', of an app with limits', { limits: { callsAtOnce: 10 } }],
])('reports neither success nor failure if the database’s answer is lost%s', async (_, extra) => {
  await using database = await openTestDatabase('postgres');
  const url = database.location.databaseUrl ?? '';
  const wire = await layDatabaseWire(url);
  try {
    const ledger = ledgerOn({ connectionString: through(url, wire) });
    const call = acceptedCall();
    wire.muteSenderOf('limits' in extra ? 'commit' : 'accept calls');
    const answer = ledger.accept(call, extra);
    answer.catch(() => undefined);
    await eventually(
      async () =>
        (await database.pool.query('select from calls where call_id = $1', [call.callId]))
          .rowCount === 1,
      'it is stored',
    );
    wire.heal();

    await expect(answer).rejects.toThrow();
  } finally {
    await wire.close();
  }
});
