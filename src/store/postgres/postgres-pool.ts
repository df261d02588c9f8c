// Opens pools of connections to PostgreSQL. Each connection is prepared before its first use, lives
// for a few minutes, and is replaced if the server has gone silent.

import { type ClientBase, Pool, type PoolConfig } from 'pg';
import type { Logger } from '../../lib/logger.ts';
import { isSilentServer } from '../sql-errors.ts';
import { prepareSession, SessionClient } from './postgres-session.ts';

/** The server's own limits for a session. */
export const limits = {
  /**
   * All statements are small, so one that takes this long is stuck, and its caller has given up
   * anyway.
   */
  statement_timeout: 15_000,
  lock_timeout: 10_000,
  idle_in_transaction_session_timeout: 30_000,
} as const;

export const timeouts = {
  /** How long a caller waits for a free connection, or for a new connection to open. */
  connectionTimeoutMillis: 10_000,
  /** The client's own limit, in case the server has disappeared without closing the connection. */
  query_timeout: 20_000,
} as const satisfies PoolConfig;

/**
 * Idle connections are closed after this time. Because the load comes in bursts, the pool's default
 * of ten seconds caused a new connection every other second at twenty calls per second. Firewalls
 * usually drop idle connections after about four minutes.
 */
const idleConnectionMs = 120_000;
/**
 * A connection lives at most this long, and at least `minLifetimeShare` of it. After a fail-over,
 * connections to the old server are gone soon, even if it still answers. The prepared statements of
 * a connection, which name a day, are freed too. The lifetime is random, so that the connections of
 * a burst don't all reconnect at the same moment.
 *
 * We measured what a new connection costs: 4 to 5 ms of CPU on the server and 1.5 ms here, or 6 ms
 * here with a password and TLS. It then parses each statement and plans it five times, which costs
 * 15 ms, as much as thirty executions. For 17 connections, all of that is 0.2% of a core.
 */
const maxLifetimeS = 300;
const minLifetimeShare = 0.8;
/**
 * PostgreSQL decides at the start of a session whether it is read-only, unless the whole server is.
 * Such a session is replaced soon, because the new one may be writable.
 */
const readOnlyLifetimeS = 1;
/**
 * Without this, the kernel would first look after two hours whether the other end of an idle
 * connection still exists. From then on, libuv asks every second, ten times.
 */
const keepAliveAfterMs = 10_000;
/** If a server went silent, we replace all idle connections, but not more often than this. */
const replacementMs = 10_000;

export type PostgresPoolOptions = Pick<
  PoolConfig,
  'max' | 'connectionTimeoutMillis' | 'query_timeout'
> & {
  readonly statementTimeoutMs?: number;
};

/** The pool waits for the promise before anybody gets the connection. */
type AwaitingPoolConfig = Omit<PoolConfig, 'onConnect'> & {
  readonly onConnect: (client: ClientBase) => Promise<void>;
};

export function openPostgresPool(
  address: PoolConfig,
  logger: Logger,
  { statementTimeoutMs = limits.statement_timeout, ...options }: PostgresPoolOptions,
): Pool {
  const sessionLimits = { ...limits, statement_timeout: statementTimeoutMs };
  const patienceMs = options.connectionTimeoutMillis ?? timeouts.connectionTimeoutMillis;
  const config: AwaitingPoolConfig = {
    ...address,
    Client: SessionClient,
    application_name: 'offhook',
    idleTimeoutMillis: idleConnectionMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    ...timeouts,
    ...options,
    onConnect: async (client) => {
      const { isReadOnly } = await prepareSession(client, sessionLimits, patienceMs);
      const share = minLifetimeShare + Math.random() * (1 - minLifetimeShare);
      // The pool reads this option next, for this connection only.
      pool.options.maxLifetimeSeconds = isReadOnly ? readOnlyLifetimeS : maxLifetimeS * share;
    },
  };
  const pool = new Pool(config);
  surviveLostConnections(pool, logger);
  return pool;
}

/**
 * Closes the idle connections of all pools if a statement got no answer at all. The server's host
 * has probably gone, or another one has taken its place. Without this, a statement would have to
 * time out on each of the connections.
 */
export function replaceSilentConnections(pools: readonly Pool[], logger: Logger): void {
  let replacedAtMs = Number.NEGATIVE_INFINITY;
  const onRelease = (error: unknown): void => {
    const nowMs = performance.now();
    if (!isSilentServer(error) || nowMs - replacedAtMs < replacementMs) return;
    replacedAtMs = nowMs;
    logger.warn('the database went silent; idle connections are replaced');
    for (const pool of pools) {
      for (let idle = pool.idleCount; idle > 0; idle -= 1) {
        // Passing `true` closes the connection.
        pool.connect().then(
          (client) => client.release(true),
          () => undefined,
        );
      }
    }
  };
  for (const pool of pools) pool.on('release', onRelease);
}

/**
 * Logs lost idle connections. The pool replaces them, but without a listener the error would end
 * the process.
 */
export function surviveLostConnections(pool: Pool, logger: Logger): void {
  pool.on('error', (error) => logger.warn({ err: error }, 'idle database connection lost'));
  // The pool only listens to idle connections. If a connection is lost during a transaction, the
  // current or next statement fails with that error anyway.
  pool.on('connect', (client) => client.on('error', () => undefined));
}
