// Lists an account's currently failing receivers, combining what all nodes have observed.

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
};

const maxReceivers = 200;

const statement = {
  name: 'failing-receivers',
  text: `
select app_id, origin, failing_since, failures, last_failed_at, last_error from notification_endpoints
where account_id = $1 and failing_since is not null order by failing_since limit ${maxReceivers}`,
} as const;

type Columns = {
  readonly app_id: string;
  readonly origin: string;
  readonly failing_since: Date;
  readonly failures: number;
  readonly last_failed_at: Date | null;
  readonly last_error: string | null;
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
  }));
}
