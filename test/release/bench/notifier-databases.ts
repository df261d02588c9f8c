// Runs a bench of the notifier on the requested databases. Each database is opened with the schema.

import { silentLogger } from '../../../src/lib/logger.ts';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { makeDataDir } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';

/** @param wanted `pglite`, `postgres` or `both` */
export async function onDatabases(
  wanted: string,
  bench: (name: string, database: Database) => Promise<void>,
): Promise<void> {
  if (wanted !== 'postgres') {
    const folder = await makeDataDir();
    await benchOn({ dataDir: folder.path }, 'PGlite', bench);
    await folder.remove();
  }
  if (wanted !== 'pglite') {
    const postgres = await startPostgres({ fsync: true });
    await benchOn({ dataDir: '', databaseUrl: postgres.url }, 'PostgreSQL (fsync on)', bench);
    await postgres.stop();
  }
}

async function benchOn(
  location: { readonly dataDir: string; readonly databaseUrl?: string },
  name: string,
  bench: (name: string, database: Database) => Promise<void>,
): Promise<void> {
  const database = await openDatabase({ ...location, logger: silentLogger });
  await bench(name, database);
  await database.close();
}

/** Deletes the backlog of the previous round. */
export async function forgetNotifications({ pool }: Database): Promise<void> {
  await pool.query(
    'delete from notification_lanes; delete from notifications; delete from delivery_attempts',
  );
}
