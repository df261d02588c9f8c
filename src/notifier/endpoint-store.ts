// Stores failing endpoints: one row for each receiver and app, shared by all nodes.

import type { SqlClient } from './sql-client.ts';

/**
 * A receiver as one app uses it. We keep only the URL's origin, because paths and queries may
 * contain secrets.
 */
export type Endpoint = {
  readonly accountId: string;
  readonly appId: string;
  readonly origin: string;
};

/** Attempts at an endpoint since the last report. */
export type EndpointReport = Endpoint & {
  /** When an attempt last succeeded. Undefined if none did. */
  readonly lastSuccessAt?: Date;
  /** Number of consecutive failures since the last success. */
  readonly failures: number;
  readonly failingSince?: Date;
  readonly lastFailedAt?: Date;
  readonly lastError?: string;
};

export type EndpointStreak = Endpoint & {
  readonly failingSince: Date;
  readonly failures: number;
  readonly lastError?: string;
  /** When the streak of failures ended. Undefined while it continues. */
  readonly recoveredAt?: Date;
};

/**
 * Limits the endpoints in memory and in one result. If more endpoints are failing, the fault is
 * most likely in our own network.
 */
export const maxEndpoints = 10_000;
/** Time-out for publishing an alert, after which the next node to check publishes the alert. */
const claimMs = 60_000;

// Ends only failure streaks that started before the success. Any later streak is separate.
const recoverStatement = {
  name: 'endpoints-recover',
  text: `
update notification_endpoints e set failing_since = null, recovered_at = given.last_success_at
from jsonb_to_recordset($1::jsonb) as given(app_id text, origin text, last_success_at timestamptz)
where e.app_id = given.app_id and e.origin = given.origin and e.failing_since <= given.last_success_at`,
} as const;

// Two nodes may report the same endpoints. The fixed order keeps them from deadlocking.
const failStatement = {
  name: 'endpoints-fail',
  text: `
insert into notification_endpoints as e
  (app_id, origin, account_id, failing_since, failures, last_failed_at, last_error)
select app_id, origin, account_id, failing_since, failures, last_failed_at, last_error
from jsonb_to_recordset($1::jsonb) as given(app_id text, origin text, account_id text, failing_since timestamptz,
  failures integer, last_failed_at timestamptz, last_error text)
order by app_id, origin
on conflict (app_id, origin) do update set
  failing_since = coalesce(e.failing_since, excluded.failing_since),
  failures = excluded.failures + case when e.failing_since is null then 0 else e.failures end,
  last_failed_at = excluded.last_failed_at, last_error = excluded.last_error`,
} as const;

const forgetStatement = {
  name: 'endpoints-forget',
  text: 'delete from notification_endpoints where failing_since is null and told_since is null',
} as const;

// Claims a recovery before the endpoint's next streak, so the alerts are published in order.
const claimStatement = {
  name: 'endpoints-claim',
  text: `
update notification_endpoints e set claimed_until = $2
from (
  select app_id, origin from notification_endpoints
  where (claimed_until is null or claimed_until < $1) and case
    when told_since is null then failing_since <= $3 and failures >= $4
    else failing_since is distinct from told_since end
  order by app_id, origin limit 100
  for update skip locked
) due
where e.app_id = due.app_id and e.origin = due.origin
returning e.app_id, e.origin, e.account_id, e.failing_since, e.failures, e.last_error, e.recovered_at, e.told_since`,
} as const;

const alertedStatement = {
  name: 'endpoints-alerted',
  text: `
update notification_endpoints set told_since = $3, claimed_until = null where app_id = $1 and origin = $2`,
} as const;

const failingStatement = {
  name: 'endpoints-failing',
  text: `
select app_id, origin, account_id, told_since is not null as alerted from notification_endpoints
where failing_since is not null limit ${maxEndpoints}`,
} as const;

const watchesStatement = {
  name: 'endpoints-watches',
  text: 'select exists (select from notification_endpoints) as watches',
} as const;

export type EndpointStore = ReturnType<typeof createEndpointStore>;

export function createEndpointStore(sql: SqlClient) {
  return {
    async report(reports: readonly EndpointReport[]): Promise<void> {
      const recovering = reports.filter(({ lastSuccessAt }) => lastSuccessAt !== undefined);
      if (recovering.length > 0)
        await sql.query({ ...recoverStatement, values: [rowsOf(recovering)] });
      const failing = reports.filter(({ failures }) => failures > 0);
      if (failing.length > 0) await sql.query({ ...failStatement, values: [rowsOf(failing)] });
    },
    /**
     * Claims streaks that need an alert because they have started or ended. No other node can claim
     * the same streak until the claim runs out.
     */
    async claim(
      now: Date,
      { failingSince, failures }: { readonly failingSince: Date; readonly failures: number },
    ): Promise<readonly EndpointStreak[]> {
      await sql.query({ ...forgetStatement, values: [] });
      const until = new Date(now.getTime() + claimMs);
      const { rows } = await sql.query<ClaimedRow>({
        ...claimStatement,
        values: [now, until, failingSince, failures],
      });
      return rows.map(streakOf);
    },
    /** Records that the alert has been published. */
    async alerted({ appId, origin, failingSince, recoveredAt }: EndpointStreak): Promise<void> {
      const alertedSince = recoveredAt === undefined ? failingSince : null;
      await sql.query({ ...alertedStatement, values: [appId, origin, alertedSince] });
    },
    /** Whether any endpoint still has a row. */
    async watchesAny(): Promise<boolean> {
      const { rows } = await sql.query<{ watches: boolean }>({ ...watchesStatement, values: [] });
      return rows[0]?.watches === true;
    },
    async failing(): Promise<readonly (Endpoint & { readonly alerted: boolean })[]> {
      const { rows } = await sql.query<EndpointRow & { readonly alerted: boolean }>({
        ...failingStatement,
        values: [],
      });
      return rows.map((row) => ({ ...endpointOf(row), alerted: row.alerted }));
    },
  };
}

type EndpointRow = {
  readonly app_id: string;
  readonly origin: string;
  readonly account_id: string;
};

type ClaimedRow = EndpointRow & {
  readonly failing_since: Date | null;
  readonly failures: number;
  readonly last_error: string | null;
  readonly recovered_at: Date | null;
  readonly told_since: Date | null;
};

function endpointOf(row: EndpointRow): Endpoint {
  return { appId: row.app_id, origin: row.origin, accountId: row.account_id };
}

function streakOf(row: ClaimedRow): EndpointStreak {
  const { failing_since, told_since, recovered_at, last_error, failures } = row;
  const since = told_since ?? failing_since;
  if (since === null) throw new Error("an endpoint's failure streak has no start time");
  return {
    ...endpointOf(row),
    failingSince: since,
    failures,
    ...(last_error === null ? {} : { lastError: last_error }),
    ...(told_since === null ? {} : { recoveredAt: recovered_at ?? failing_since ?? since }),
  };
}

function rowsOf(reports: readonly EndpointReport[]): string {
  return JSON.stringify(
    reports.map((report) => ({
      app_id: report.appId,
      origin: report.origin,
      account_id: report.accountId,
      last_success_at: report.lastSuccessAt,
      failing_since: report.failingSince,
      failures: report.failures,
      last_failed_at: report.lastFailedAt,
      last_error: report.lastError,
    })),
  );
}
