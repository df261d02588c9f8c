// Opens the database, which is either PostgreSQL at a configured URL or PGlite in a worker thread.
// We connect to both with `pg`, so the rest of the code can treat the two alike, including their
// errors. On PostgreSQL we use three kinds of connection, so that neither calls nor the lease have
// to wait for API clients' reads. PGlite only has a single session.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool, type PoolConfig } from 'pg';
import type { Logger } from '../lib/logger.ts';
import { repeat } from '../lib/repeat.ts';
import { makeDays } from './days.ts';
import { startPglite } from './pglite/pglite-server.ts';
import { analyzeGrown, growthCheckMs, statisticsTarget } from './pglite/pglite-statistics.ts';
import { createReads, pgliteReads, postgresReads, type Reads, readTimeoutMs } from './reads.ts';
import { ensureSchema, pgliteHome, postgresHome } from './schema.ts';
import { isUnreachable } from './sql-errors.ts';

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

const timeouts = {
  /** How long a caller waits for a free connection, or for a new connection to open. */
  connectionTimeoutMillis: 10_000,
  /**
   * All statements are small, so one that takes this long is stuck, and its caller has given up
   * anyway.
   */
  statement_timeout: 15_000,
  lock_timeout: 10_000,
  idle_in_transaction_session_timeout: 30_000,
  /** The client's own limit, in case the server has disappeared without closing the connection. */
  query_timeout: 20_000,
} as const satisfies PoolConfig;

/** `query_timeout` is the client's own limit, in case the server doesn't stop the statement. */
const readTimeouts = {
  connectionTimeoutMillis: readTimeoutMs,
  statement_timeout: readTimeoutMs,
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
/**
 * Idle connections are closed after this time. A new connection parses each statement and plans it
 * five times. That costs 15 ms of CPU, as much as thirty executions. Because the load comes in
 * bursts, the pool's default of ten seconds caused a new connection every other second at twenty
 * calls per second. Firewalls usually drop idle connections after about four minutes.
 */
const idleConnectionMs = 120_000;
/**
 * Each connection accumulates prepared statements that name a day. Closing it after a day frees
 * them.
 */
const maxConnectionAgeS = 86_400;
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
  const openPool = (options: PoolConfig): Pool => {
    const opened = new Pool({
      connectionString: databaseUrl,
      application_name: 'offhook',
      idleTimeoutMillis: idleConnectionMs,
      maxLifetimeSeconds: maxConnectionAgeS,
      keepAlive: true,
      ...timeouts,
      ...options,
    });
    surviveLostConnections(opened, logger);
    return opened;
  };
  const pool = openPool({ max: postgresConnections.calls });
  const readPool = openPool({ max: postgresConnections.reads, ...readTimeouts });
  const leasePool = openPool({
    max: postgresConnections.lease,
    connectionTimeoutMillis: leaseConnectTimeoutMs,
  });
  const close = async (): Promise<void> => {
    await Promise.all([pool, readPool, leasePool].map((each) => each.end()));
  };
  try {
    await untilReachable(pool, logger);
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
    maxLifetimeSeconds: maxConnectionAgeS,
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

/**
 * Logs lost idle connections. The pool replaces them, but without a listener the error would end
 * the process.
 */
function surviveLostConnections(pool: Pool, logger: Logger): void {
  pool.on('error', (error) => logger.warn({ err: error }, 'idle database connection lost'));
  // The pool only listens to idle connections. If a connection is lost during a transaction, the
  // current or next statement fails with that error anyway.
  pool.on('connect', (client) => client.on('error', () => undefined));
}

/** Fails on a read-only server, just as any write would. The pool then closes the connection. */
const writableStatement = `
do $$ begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'the server only reads' using errcode = 'read_only_sql_transaction';
  end if;
end $$`;

/**
 * Checks that the database responds and accepts writes.
 *
 * @throws Error if the database doesn't respond, or is read-only (e.g. a standby)
 */
export async function checkWritable(pool: Pick<Pool, 'query'>): Promise<void> {
  await pool.query(writableStatement);
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
      if (!isUnreachable(error) || Date.now() > deadline) {
        throw new Error('the database at DATABASE_URL cannot be reached', { cause: error });
      }
      const { code } = error as { code?: unknown };
      // Log once per reason, not once per attempt.
      if (code !== logged) logger.warn({ code }, 'waiting for the database');
      logged = code;
      await pause(500);
    }
  }
}
