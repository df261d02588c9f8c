// Lists an account's currently failing receivers, combining what all nodes have observed, and lets
// their notifications be tried again at once.

import type { SqlClient } from './sql-client.ts';

export type FailingReceiver = {
  readonly appId: string;
  /** Scheme, host and port. Omits the path because it may contain secrets. */
  readonly origin: string;
  readonly failingSince: string;
  /** Number of consecutive failures. */
  readonly failures: number;
  readonly lastFailedAt?: string;
  readonly lastError?: string;
  /**
   * The number of calls whose notifications wait for this receiver, of all the account's apps, at
   * most `maxWaiting`.
   */
  readonly waitingCalls: number;
  /** When the first of these calls is due. Undefined if no call waits. */
  readonly nextAttemptAt?: string;
};

const maxReceivers = 200;
/** Bounds what a list of receivers reads, and how many calls become due together. */
const maxWaiting = 1_000;

const statement = {
  name: 'failing-receivers',
  text: `
select app_id, origin, failing_since, failures, last_failed_at, last_error, waiting.calls, waiting.next_attempt_at
from (
  select * from notification_endpoints
  where account_id = $1 and failing_since is not null order by failing_since limit ${maxReceivers}
) e cross join lateral (
  select count(*)::integer as calls, min(next_attempt_at) as next_attempt_at from (
    select next_attempt_at from notification_lanes l
    where l.account_id = e.account_id and l.origin = e.origin order by next_attempt_at limit ${maxWaiting}
  ) as first
) waiting
order by failing_since`,
} as const;

type Columns = {
  readonly app_id: string;
  readonly origin: string;
  readonly failing_since: Date;
  readonly failures: number;
  readonly last_failed_at: Date | null;
  readonly last_error: string | null;
  readonly calls: number;
  readonly next_attempt_at: Date | null;
};

export async function failingReceivers(
  sql: SqlClient,
  accountId: string,
): Promise<readonly FailingReceiver[]> {
  const { rows } = await sql.query<Columns>({ ...statement, values: [accountId] });
  return rows.map((row) => ({
    appId: row.app_id,
    origin: row.origin,
    failingSince: row.failing_since.toISOString(),
    failures: row.failures,
    ...(row.last_failed_at === null ? {} : { lastFailedAt: row.last_failed_at.toISOString() }),
    ...(row.last_error === null ? {} : { lastError: row.last_error }),
    waitingCalls: row.calls,
    ...(row.next_attempt_at === null ? {} : { nextAttemptAt: row.next_attempt_at.toISOString() }),
  }));
}

// The dispatchers poll for due calls every second, and limit how many they send to a failing
// receiver at a time. A process that is sending a call's notifications keeps its lease.
const retryStatement = {
  name: 'failing-receivers-retry',
  text: `
update notification_lanes set next_attempt_at = $3
where call_id in (
  select call_id from notification_lanes
  where account_id = $1 and origin = $2 and next_attempt_at > $3
  order by next_attempt_at limit ${maxWaiting} for update skip locked)`,
} as const;

/**
 * Makes the calls that wait for a receiver due now. A notification that the receiver rejected (4xx)
 * nevertheless keeps its own time, because it would be rejected again.
 *
 * @returns the number of calls
 */
export async function retryReceiver(
  sql: SqlClient,
  { accountId, origin, now }: { accountId: string; origin: string; now: Date },
): Promise<number> {
  const { rowCount } = await sql.query({ ...retryStatement, values: [accountId, origin, now] });
  return rowCount ?? 0;
}
