// Opens the database: PostgreSQL by its URL, or PGlite in a worker thread. Both are spoken to by
// `pg`, so that everything above is written, and fails, the same way. On PostgreSQL there are three
// kinds of connection, so that neither calls nor the lease wait for what clients read. PGlite has
// one session.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool, type PoolConfig } from 'pg';
import type { Logger } from '../lib/logger.ts';
import { repeat } from '../lib/repeat.ts';
import { makeDays } from './days.ts';
import { startPglite } from './pglite/pglite-server.ts';
import { analyzeGrown, growthLookMs, statisticsTarget } from './pglite/pglite-statistics.ts';
import { createReads, pgliteReads, postgresReads, type Reads, readTimeoutMs } from './reads.ts';
import { ensureSchema, pgliteHome, postgresHome } from './schema.ts';
import { isUnreachable } from './sql-errors.ts';

export type Database = {
  readonly kind: 'postgres' | 'pglite';
  /** For calls, and all that is not below. */
  readonly pool: Pool;
  /** For the renewals of the lease alone. */
  readonly leasePool: Pool;
  /** For what clients of the API read. */
  readonly reads: Reads;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  readonly databaseUrl?: string;
  /** The embedded database lives in `pglite` under it. */
  readonly dataDir: string;
  readonly logger: Logger;
  /** The embedded database died: nothing can be stored any more, and the process should end. */
  readonly onFatal?: (error: Error) => void;
};

const timeouts = {
  /** Waiting for a free connection, or for a new one. */
  connectionTimeoutMillis: 10_000,
  /** Every statement here is small; one that takes this long is stuck, and its caller gives up anyway. */
  statement_timeout: 15_000,
  lock_timeout: 10_000,
  idle_in_transaction_session_timeout: 30_000,
  /** For a server that went away without a word. */
  query_timeout: 20_000,
} as const satisfies PoolConfig;

/** The client's own is for a server that does not end the statement. */
const readTimeouts = {
  connectionTimeoutMillis: readTimeoutMs,
  statement_timeout: readTimeoutMs,
  query_timeout: readTimeoutMs + 2_000,
} as const satisfies PoolConfig;

/** Together far below PostgreSQL's default of 100 for several nodes; group commit needs few. */
export const postgresConnections = { calls: 10, reads: 6, lease: 1 } as const;
/** A renewal that waits for a connection for longer would only stand in the way of the next one. */
const leaseConnectTimeoutMs = 2_000;
/**
 * A new connection parses each statement, and plans it five times: 15 ms of CPU, as much as thirty of them take. They are needed in bursts,
 * so that with the pool's own ten seconds one was made every other second at twenty calls a second. Firewalls forget one after four minutes.
 */
const idleConnectionMs = 120_000;
/** What a connection has prepared of statements that name a day goes with it. */
const longestConnectionS = 86_400;
/** A database that is just starting (a compose file, a fail-over) is waited for this long. */
const startPatienceMs = 30_000;
const closePatienceMs = 500;

/** Opens and reaches the database, and gives it the schema. */
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
      maxLifetimeSeconds: longestConnectionS,
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
    // One session, see pglite-worker.ts. So a transaction must not wait for a query outside of it: it would wait for itself.
    max: 1,
    idleTimeoutMillis: 0,
    maxLifetimeSeconds: longestConnectionS,
    ...timeouts,
    verify: (client, done) => {
      // The session outlives its connection: a new one must not inherit what a broken one left.
      client.query('discard all', (error) => {
        if (error) done(error);
        else client.query(`set default_statistics_target = ${statisticsTarget}`, done);
      });
    },
  });
  surviveLostConnections(pool, logger);
  const growth = repeat({ name: 'grown tables', everyMs: growthLookMs, logger }, () =>
    analyzeGrown(pool),
  );
  const close = async (): Promise<void> => {
    const ended = Promise.all([growth.stop(), pool.end()]);
    // Waits for the code that still has the connection, but not for one that will never give it back.
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

/** Without a listener the loss of a connection would end the process; the pool replaces it by itself. */
function surviveLostConnections(pool: Pool, logger: Logger): void {
  pool.on('error', (error) => logger.warn({ err: error }, 'idle database connection lost'));
  // The pool listens only to idle ones: one that is lost in a transaction fails its statement, or the next, which says so.
  pool.on('connect', (client) => client.on('error', () => undefined));
}

/** Fails on a server that only reads, as a write would: the pool then closes the connection. */
const writableStatement = `
do $$ begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'the server only reads' using errcode = 'read_only_sql_transaction';
  end if;
end $$`;

/** @throws Error while the database does not answer, or only reads, as a standby does. */
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
      // Anything but "not yet" is a mistake to be told at once.
      if (!isUnreachable(error) || Date.now() > deadline) {
        throw new Error('the database at DATABASE_URL cannot be reached', { cause: error });
      }
      const { code } = error as { code?: unknown };
      // Once for each reason, not for each try.
      if (code !== logged) logger.warn({ code }, 'waiting for the database');
      logged = code;
      await pause(500);
    }
  }
}
