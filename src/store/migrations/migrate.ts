// Brings a database to the newest schema: only forward, all steps in one transaction, one node at a time; then, where other nodes may
// use it, the indexes that take long.

import type { Pool, PoolClient } from 'pg';
import type { Logger } from '../../lib/logger.ts';
import { callsAndNotifications } from './0001-calls-and-notifications.ts';
import { bots } from './0002-bots.ts';
import { connections } from './0003-connections.ts';
import { messages } from './0004-messages.ts';
import { conversations } from './0005-conversations.ts';
import { testRuns } from './0006-test-runs.ts';
import { dataTables } from './0007-data-tables.ts';
import { importedRecords } from './0008-imported-records.ts';
import { nodes } from './0009-nodes.ts';
import { appCredentials } from './0010-app-credentials.ts';
import { trunkQueue } from './0011-trunk-queue.ts';
import { appLimits } from './0012-app-limits.ts';
import { deliveries } from './0013-deliveries.ts';
import { trunkTake } from './0014-trunk-take.ts';
import { companionRetention } from './0015-companion-retention.ts';
import { testRunsById } from './0016-test-runs-by-id.ts';
import { tokenLifetime } from './0017-token-lifetime.ts';
import { callTakes } from './0018-call-takes.ts';
import { outbox } from './0019-outbox.ts';
import { streams } from './0020-streams.ts';
import { callLegs } from './0021-call-legs.ts';
import { sounds } from './0022-sounds.ts';
import { secondLegs } from './0023-second-legs.ts';
import { liveEvents } from './0025-live-events.ts';
import { consoleTables } from './0026-console.ts';
import { callNotes } from './0027-call-notes.ts';
import { waitingCalls } from './0028-waiting-calls.ts';
import { traceIds } from './0029-trace-ids.ts';
import { numberReading } from './0030-number-reading.ts';
import { consoleCredentials } from './0032-console-credentials.ts';
import { steadyLeases } from './0033-steady-leases.ts';
import { queuesByAccount } from './0034-queues-by-account.ts';
import { buildLateIndexes } from './late-indexes.ts';
import type { Migration } from './migration.ts';

export const migrations: readonly Migration[] = [
  callsAndNotifications,
  bots,
  connections,
  messages,
  conversations,
  testRuns,
  dataTables,
  importedRecords,
  nodes,
  appCredentials,
  trunkQueue,
  appLimits,
  deliveries,
  trunkTake,
  companionRetention,
  testRunsById,
  tokenLifetime,
  callTakes,
  outbox,
  streams,
  callLegs,
  sounds,
  secondLegs,
  liveEvents,
  consoleTables,
  callNotes,
  waitingCalls,
  traceIds,
  numberReading,
  consoleCredentials,
  steadyLeases,
  queuesByAccount,
];

/** Any number that no other program takes an advisory lock on: the letters `offhook`. */
const migrationLockKey = '31366214770880363';

/** `alone`: no other process uses the database, so that what takes long may hold others up. */
export type Sharing = 'shared' | 'alone';

/** Nodes that start together wait for the first one's migrations; one that waits this long has met a stuck node. */
const longestWaitMs = 120_000;

export async function migrate(
  pool: Pool,
  logger: Logger,
  sharing: Sharing,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  await runSteps(pool, logger, sharing, steps);
  const indexes = steps.flatMap((step) => step.indexes ?? []);
  if (sharing === 'shared') await buildLateIndexes(pool, logger, indexes);
}

async function runSteps(
  pool: Pool,
  logger: Logger,
  sharing: Sharing,
  steps: readonly Migration[],
): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('begin');
    await client.query(`set local statement_timeout = ${longestWaitMs}`);
    await client.query(`set local lock_timeout = ${longestWaitMs}`);
    await patiently(client, `select pg_advisory_xact_lock(${migrationLockKey})`);
    await runMissing(client, logger, sharing, steps);
    await client.query('commit');
  } catch (error) {
    failure = new Error('the database could not be migrated', { cause: error });
    await client.query('rollback').catch(() => undefined);
    throw failure;
  } finally {
    client.release(failure);
  }
}

async function runMissing(
  client: PoolClient,
  logger: Logger,
  sharing: Sharing,
  steps: readonly Migration[],
): Promise<void> {
  await client.query(
    `create table if not exists schema_migrations (
       version integer primary key, name text not null, applied_at timestamptz(3) not null)`,
  );
  const { rows } = await client.query<{ version: number }>('select version from schema_migrations');
  const done = new Set(rows.map((row) => row.version));
  const missing = steps.filter((candidate) => !done.has(candidate.version));
  // What was never started has small tables.
  const isAlone = sharing === 'alone' || done.size === 0;
  for (const step of missing) {
    const indexes = isAlone ? (step.indexes ?? []) : [];
    const text = [step.sql, ...indexes.map(({ name, on }) => `create index ${name} on ${on}`)].join(
      ';\n',
    );
    await patiently(client, text);
    await client.query(
      'insert into schema_migrations (version, name, applied_at) values ($1, $2, now())',
      [step.version, step.name],
    );
  }
  if (missing.length > 0) {
    const versions = missing.map((step) => step.version);
    logger.info({ from: Math.max(0, ...done), to: Math.max(...versions) }, 'database migrated');
  }
  const newest = Math.max(0, ...steps.map((step) => step.version));
  const unknown = [...done].filter((version) => version > newest);
  // During a rolling upgrade an old node may start again: migrations only add, so that it can work on.
  if (unknown.length > 0) logger.warn({ versions: unknown }, 'database is newer than this program');
}

/** The pool's own time-out is for statements that are small. */
async function patiently(client: PoolClient, text: string): Promise<void> {
  const query = { text, query_timeout: longestWaitMs };
  await client.query(query);
}
