// Opens the database, which is either PostgreSQL at a configured URL or PGlite in a worker thread.
// We connect to both with `pg`, so the rest of the code can treat the two alike, including their
// errors. On PostgreSQL we use three kinds of connection, so that neither calls nor the lease have
// to wait for API clients' reads. PGlite only has a single session.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import type { Logger } from '../lib/logger.ts';
import { repeat } from '../lib/repeat.ts';
import { makeDays } from './days.ts';
import { startPglite } from './pglite/pglite-server.ts';
import { analyzeGrown, growthCheckMs, statisticsTarget } from './pglite/pglite-statistics.ts';
import { addressOptions, tlsProblem } from './postgres/postgres-address.ts';
import {
  limits,
  openPostgresPool,
  type PostgresPoolOptions,
  replaceSilentConnections,
  surviveLostConnections,
  timeouts,
} from './postgres/postgres-pool.ts';
import { hasSharedSessions, sharedSessionsProblem } from './postgres/postgres-session.ts';
import { createReads, pgliteReads, postgresReads, type Reads, readTimeoutMs } from './reads.ts';
import { ensureSchema, pgliteHome, postgresHome } from './schema.ts';
import { isRefusedConnection, isUnreachable } from './sql-errors.ts';

export type Database = {
  readonly kind: 'postgres' | 'pglite';
  /** Connections for calls and all other work. */
  readonly pool: Pool;
  /** A connection that is reserved for lease renewals. */
  readonly leasePool: Pool;
  /** Connections for reads by API clients. */
  readonly reads: Reads;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  readonly databaseUrl?: string;
  /** The folder that contains `pglite`, the embedded database's folder. */
  readonly dataDir: string;
  readonly logger: Logger;
  /**
   * Called if the embedded database dies. The process should then exit, because it can't store
   * anything any more.
   */
  readonly onFatal?: (error: Error) => void;
};

/** `query_timeout` is the client's own limit, in case the server doesn't stop the statement. */
const readTimeouts = {
  connectionTimeoutMillis: readTimeoutMs,
  query_timeout: readTimeoutMs + 2_000,
} as const satisfies PoolConfig;

/**
 * Group commit only needs a few connections. Even with several nodes, the total remains far below
 * PostgreSQL's default of 100.
 */
export const postgresConnections = { calls: 10, reads: 6, lease: 1 } as const;
/**
 * Shorter than the time-out of an attempt to renew (`src/lib/lease-times.ts`). If a renewal waited
 * longer for a connection, it would only delay the next renewal.
 */
const leaseConnectTimeoutMs = 1_000;
/** PGlite's sessions only keep prepared statements, which name a day. */
const pgliteLifetimeS = 86_400;
/**
 * The gateway's start waits this long for a database that is still starting, e.g. in Compose or
 * after a fail-over.
 */
const startPatienceMs = 30_000;
const closePatienceMs = 500;

/**
 * Opens the database, waits until it's reachable, and creates the schema if it doesn't exist yet.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return options.databaseUrl === undefined
    ? await openPglite(options)
    : await openPostgres(options.databaseUrl, options.logger);
}

async function openPostgres(databaseUrl: string, logger: Logger): Promise<Database> {
  const address = addressOptions(databaseUrl);
  const openPool = (options: PostgresPoolOptions): Pool =>
    openPostgresPool(address, logger, options);
  const pool = openPool({ max: postgresConnections.calls });
  const readPool = openPool({
    ...{ max: postgresConnections.reads, ...readTimeouts },
    statementTimeoutMs: readTimeoutMs,
  });
  const leasePool = openPool({
    max: postgresConnections.lease,
    connectionTimeoutMillis: leaseConnectTimeoutMs,
  });
  const pools = [pool, readPool, leasePool];
  replaceSilentConnections(pools, logger);
  const close = async (): Promise<void> => {
    await Promise.all(pools.map((each) => each.end()));
  };
  try {
    await untilReachable(pool, logger);
    await refuseSharedSessions(pool);
    await ensureSchema(pool, { logger, home: postgresHome });
    await makeDays(pool, logger, new Date());
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...{ kind: 'postgres', pool, leasePool, close },
    reads: createReads(readPool, postgresReads),
  };
}

async function refuseSharedSessions(pool: Pool): Promise<void> {
  const clients: PoolClient[] = [];
  try {
    clients.push(await pool.connect(), await pool.connect());
    const [one, other] = clients as [PoolClient, PoolClient];
    if (await hasSharedSessions(one, other)) throw new Error(sharedSessionsProblem);
  } finally {
    for (const client of clients) client.release();
  }
}

async function openPglite({ dataDir, logger, onFatal }: DatabaseOptions): Promise<Database> {
  const onDeath = (error: Error): void => {
    logger.fatal({ err: error }, 'embedded database died');
    onFatal?.(error);
  };
  const server = await startPglite(dataDir, onDeath, logger);
  const pool = new Pool({
    host: server.socketFolder,
    user: 'postgres',
    database: 'postgres',
    // PGlite only has one session (see pglite-worker.ts). A transaction must not wait for a query
    // that isn't part of it. That query would be waiting for the same connection, which would be a
    // deadlock.
    max: 1,
    idleTimeoutMillis: 0,
    maxLifetimeSeconds: pgliteLifetimeS,
    ...limits,
    ...timeouts,
    verify: (client, done) => {
      // The session outlives its connection. A new connection must not inherit a broken
      // connection's state.
      client.query('discard all', (error) => {
        if (error) done(error);
        else client.query(`set default_statistics_target = ${statisticsTarget}`, done);
      });
    },
  });
  surviveLostConnections(pool, logger);
  const growth = repeat({ name: 'grown tables', everyMs: growthCheckMs, logger }, () =>
    analyzeGrown(pool),
  );
  const close = async (): Promise<void> => {
    const ended = Promise.all([growth.stop(), pool.end()]);
    // Wait for code that is still using the connection, but not for code that never returns it.
    await Promise.race([ended, pause(closePatienceMs, undefined, { ref: false })]);
    await server.close();
  };
  try {
    await ensureSchema(pool, { logger, home: pgliteHome(dataDir) });
    await makeDays(pool, logger, new Date());
  } catch (error) {
    await close();
    throw error;
  }
  return { kind: 'pglite', pool, leasePool: pool, reads: createReads(pool, pgliteReads), close };
}

/** Fails on a read-only server, just as any write would. The pool then closes the connection. */
const writableStatement = `
do $$ begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'the server only reads' using errcode = 'read_only_sql_transaction';
  end if;
end $$`;

/** Longer than /ready waits. After it, the pool closes the connection and can try another one. */
const checkTimeoutMs = 2_000;

/**
 * Checks that the database responds and accepts writes.
 *
 * @throws Error if the database doesn't respond, or is read-only (e.g. a standby)
 */
export async function checkWritable(pool: Pick<Pool, 'query'>): Promise<void> {
  const check = { text: writableStatement, query_timeout: checkTimeoutMs };
  await pool.query(check);
}

async function untilReachable(pool: Pool, logger: Logger): Promise<void> {
  const deadline = Date.now() + startPatienceMs;
  let logged: unknown;
  for (;;) {
    try {
      await checkWritable(pool);
      return;
    } catch (error) {
      // Any other error is a configuration mistake, so waiting won't help.
      const isRefused = isRefusedConnection(error) || tlsProblem(error) !== undefined;
      const mayPass = isUnreachable(error) && !isRefused;
      if (!mayPass || Date.now() > deadline) throw unusable(error);
      const { code } = error as { code?: unknown };
      // Log once per reason, not once per attempt.
      if (code !== logged) logger.warn({ code }, 'waiting for the database');
      logged = code;
      await pause(500);
    }
  }
}

function unusable(cause: unknown): Error {
  const problem = tlsProblem(cause);
  const text =
    problem === undefined
      ? 'the database at DATABASE_URL cannot be reached'
      : `DATABASE_URL: ${problem}`;
  return new Error(text, { cause });
}
