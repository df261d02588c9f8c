// Runs the rules storm on a new PostgreSQL server, or on PGlite.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { silentLogger } from '../../../src/lib/logger.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { type OpenedDatabase, type RulesStormReport, runRulesStorm } from './run-rules.ts';

export type RulesRun = {
  readonly seed: number;
  readonly calls: number;
  readonly on: 'postgres' | 'pglite';
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
};

export async function runRules({ on, ...options }: RulesRun): Promise<RulesStormReport> {
  const dataDir = await mkdtemp(join(tmpdir(), 'offhook-rules-'));
  try {
    return on === 'postgres'
      ? await onPostgres(dataDir, options)
      : await onPglite(dataDir, options);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

type Options = Omit<RulesRun, 'on'>;

async function onPostgres(dataDir: string, options: Options): Promise<RulesStormReport> {
  const server = await startPostgres();
  try {
    return await runRulesStorm({
      ...{ ...options, leaseMs: 2_000, submitters: 160 },
      openDatabase: async () => await openMortalPostgres(server.url, dataDir),
    });
  } finally {
    await server.stop();
  }
}

/** The server closes the sessions of a process that dies, whatever they are doing. */
async function openMortalPostgres(databaseUrl: string, dataDir: string): Promise<OpenedDatabase> {
  const database = await openDatabase({ databaseUrl, dataDir, logger: silentLogger });
  const sessions = new Set<number>();
  for (const pool of [database.pool, database.leasePool]) {
    pool.on('connect', (client) => {
      const { processID } = client as unknown as { processID?: number };
      if (processID !== undefined) sessions.add(processID);
    });
  }
  return {
    database,
    close: async () => await terminate(databaseUrl, dataDir, sessions, database.pool),
  };
}

async function terminate(
  databaseUrl: string,
  dataDir: string,
  sessions: ReadonlySet<number>,
  pool: Pool,
): Promise<void> {
  const other = await openDatabase({ databaseUrl, dataDir, logger: silentLogger });
  await other.pool.query('select pg_terminate_backend(pid) from unnest($1::integer[]) pid', [
    [...sessions],
  ]);
  await other.close();
  void pool.end().catch(() => undefined);
}

async function onPglite(dataDir: string, options: Options): Promise<RulesStormReport> {
  const database = await openDatabase({ dataDir, logger: silentLogger });
  try {
    return await runRulesStorm({
      ...{ ...options, leaseMs: 8_000, submitters: 40 },
      openDatabase: async () => ({ database, close: async () => undefined }),
    });
  } finally {
    await database.close();
  }
}
