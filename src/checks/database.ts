// The PostgreSQL of DATABASE_URL, and whether its clock and ours agree: leases and retries are times of the database, tokens and
// signatures are ours.

import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import type { Config } from '../config.ts';
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

/** Receivers and NTP differ by less; a lease is some seconds long. */
const noticeableMs = 2_000;
/** Tokens of other machines are taken for expired, or for made in the future. */
const harmfulMs = 60_000;
const closePatienceMs = 500;

export function databaseCheck({ databaseUrl }: Location): Check {
  const run = async (): Promise<Finding> => {
    if (databaseUrl === undefined) return skipped('PGlite, which starts with the gateway');
    try {
      return await connected(databaseUrl, async (client) => {
        const refused = await refusalOf(client, postgresHome);
        if (refused !== undefined) return failed(refused);
        return ok(`PostgreSQL ${await ask<string>(client, `current_setting('server_version')`)}`);
      });
    } catch (error) {
      return failed(`DATABASE_URL: the database cannot be used: ${reasonOf(error)}`);
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
      const theirs = await connected(databaseUrl, (client) =>
        ask<Date>(client, 'clock_timestamp()'),
      );
      return judgeClock(theirs.getTime(), before, Date.now());
    } catch {
      return skipped('the database could not be asked for the time');
    }
  };
  return { name: 'clock', isAwaited: true, run };
}

/** `theirs` was read between the other two: only what is beyond both is a difference. */
export function judgeClock(theirs: number, before: number, after: number): Finding {
  const offMs = Math.max(theirs - after, before - theirs, 0);
  const told = `${(offMs / 1_000).toFixed(1)} s ${theirs > after ? 'behind' : 'ahead of'} the database's`;
  if (offMs < noticeableMs) return ok(`${new Date(after).toISOString()}, as the database's`);
  const advice = `the clock of this machine is ${told}; set both by NTP`;
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
    connectionString: databaseUrl,
    application_name: 'offhook check',
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
  });
  // A connection that breaks later than its query would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    await Promise.race([client.end(), pause(closePatienceMs, undefined, { ref: false })]);
  }
}
