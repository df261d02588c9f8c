// A database with the CPU time that it uses, which does not depend on what else the machine does:
// that of the backend of the only connection on PostgreSQL, and that of all threads but the main
// one on PGlite, whose worker runs in this process.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { silentLogger } from '../../../src/lib/logger.ts';
import type { openDatabase } from '../../../src/store/database.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { threadCpuMs } from './process-usage.ts';

export type MeasuredDatabase = AsyncDisposable & {
  readonly kind: 'postgres' | 'pglite';
  /** Has one connection. */
  readonly pool: Pool;
  readonly cpuMs: () => number;
};

/** @param open the `openDatabase` of the commit whose schema the database gets */
export async function measuredDatabase(
  kind: MeasuredDatabase['kind'],
  open: typeof openDatabase,
): Promise<MeasuredDatabase> {
  const dataDir = await mkdtemp(join(tmpdir(), 'offhook-bench-rules-'));
  const removeFolder = (): Promise<void> => rm(dataDir, { recursive: true, force: true });
  if (kind === 'pglite') {
    const database = await open({ dataDir, logger: silentLogger });
    return {
      ...{ kind, pool: database.pool },
      cpuMs: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1_000 - threadCpuMs();
      },
      async [Symbol.asyncDispose]() {
        await database.close();
        await removeFolder();
      },
    };
  }
  const server = await startPostgres({
    settings: ['max_wal_size=8GB', 'checkpoint_timeout=30min', 'maintenance_work_mem=512MB'],
  });
  const database = await open({ databaseUrl: server.url, dataDir, logger: silentLogger });
  await database.close();
  const pool = new Pool({ connectionString: server.url, max: 1, idleTimeoutMillis: 0 });
  // The server may stop before the idle connection closes.
  pool.on('error', () => undefined);
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  const backend = rows[0]?.pid ?? 0;
  return {
    ...{ kind, pool },
    cpuMs: () => Number(readFileSync(`/proc/${backend}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
    async [Symbol.asyncDispose]() {
      await pool.end();
      await server.stop();
      await removeFolder();
    },
  };
}
