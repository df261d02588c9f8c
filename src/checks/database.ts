// Checks the PostgreSQL server at DATABASE_URL, and compares its clock with this machine's. The
// clocks must agree, because leases and retries use the database's clock, but tokens and signatures
// use this machine's clock.

import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import type { Config } from '../config.ts';
import { AddressError, addressOptions, tlsProblem } from '../store/postgres/postgres-address.ts';
import { hasSharedSessions, sharedSessionsProblem } from '../store/postgres/postgres-session.ts';
import { postgresHome, refusalOf } from '../store/schema.ts';
import {
  type Check,
  connectTimeoutMs,
  type Finding,
  failed,
  ok,
  skipped,
  warning,
} from './check.ts';
import { reasonOf } from './reasons.ts';

type Location = Pick<Config, 'databaseUrl'>;

/**
 * NTP keeps clocks closer together than this. A larger difference matters, because leases only last
 * a few seconds.
 */
const noticeableMs = 2_000;
/**
 * With this difference, other machines' tokens appear to have expired, or to be issued in the
 * future.
 */
const harmfulMs = 60_000;
/** Maximum time to wait until the connection has closed. */
const closePatienceMs = 500;

export function databaseCheck({ databaseUrl }: Location): Check {
  const run = async (): Promise<Finding> => {
    if (databaseUrl === undefined) return skipped('PGlite, which starts with the gateway');
    try {
      return await connected(databaseUrl, async (client) => {
        const refused = await refusalOf(client, postgresHome);
        if (refused !== undefined) return failed(refused);
        const isShared = await connected(databaseUrl, (other) => hasSharedSessions(client, other));
        if (isShared) return failed(sharedSessionsProblem);
        return ok(`PostgreSQL ${await ask<string>(client, `current_setting('server_version')`)}`);
      });
    } catch (error) {
      if (error instanceof AddressError) return failed(error.message);
      const reason = tlsProblem(error) ?? reasonOf(error);
      return failed(`DATABASE_URL: the database cannot be used: ${reason}`);
    }
  };
  return { name: 'database', isAwaited: true, run };
}

export function clockCheck({ databaseUrl }: Location): Check {
  const run = async (): Promise<Finding> => {
    const before = Date.now();
    if (databaseUrl === undefined) {
      return ok(`${new Date().toISOString()}; compare it with another clock`);
    }
    try {
      const databaseTime = await connected(databaseUrl, (client) =>
        ask<Date>(client, 'clock_timestamp()'),
      );
      return judgeClock(databaseTime.getTime(), before, Date.now());
    } catch {
      return skipped('the database did not report its time');
    }
  };
  return { name: 'clock', isAwaited: true, run };
}

/**
 * Compares the clocks. `databaseMs` is the database's time, which we read between `before` and
 * `after`. A time within that interval doesn't count as a difference.
 */
export function judgeClock(databaseMs: number, before: number, after: number): Finding {
  const offMs = Math.max(databaseMs - after, before - databaseMs, 0);
  const difference = `${(offMs / 1_000).toFixed(1)} s ${databaseMs > after ? 'behind' : 'ahead of'} the database's`;
  if (offMs < noticeableMs)
    return ok(`${new Date(after).toISOString()}, which agrees with the database`);
  const advice = `the clock of this machine is ${difference}; synchronize both with NTP`;
  return offMs < harmfulMs ? warning(advice) : failed(advice);
}

async function ask<Value>(client: Client, expression: string): Promise<Value> {
  const { rows } = await client.query<{ value: Value }>(`select ${expression} as value`);
  return (rows[0] as { value: Value }).value;
}

async function connected<Value>(
  databaseUrl: string,
  use: (client: Client) => Promise<Value>,
): Promise<Value> {
  const client = new Client({
    ...addressOptions(databaseUrl),
    application_name: 'offhook check',
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
  });
  // Without this listener, the process would exit if the connection broke after the query.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    await Promise.race([client.end(), pause(closePatienceMs, undefined, { ref: false })]);
  }
}
