// If a connection is lost while in use, the code that uses it fails, but the process survives. An
// error event without a listener would end the process.

import { expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { inTransaction } from '../../src/store/transaction.ts';
import { openTestDatabase } from '../support/databases.ts';
import { layDatabaseWire, through } from '../support/wire.ts';

test.each([
  ['between two statements', undefined],
  ['during a statement', 'select pg_sleep(60)'],
])(
  'a transaction that loses its connection %s fails, and the process survives',
  async (_, statement) => {
    await using copy = await openTestDatabase('postgres');
    const url = copy.location.databaseUrl ?? '';
    const wire = await layDatabaseWire(url);
    const database = await openDatabase({
      databaseUrl: through(url, wire),
      dataDir: copy.location.dataDir,
      logger: silentLogger,
    });
    try {
      const cutOff = inTransaction(database.pool, async (client) => {
        const ended = new Promise((resolve) => client.once('end', resolve));
        const running = statement === undefined ? undefined : client.query(statement);
        running?.catch(() => undefined);
        wire.cut();
        await ended;
        await running;
        await client.query('select 1');
      });

      await expect(cutOff).rejects.toThrow();
    } finally {
      await database.close();
      await wire.close();
    }
  },
);
