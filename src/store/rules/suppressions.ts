// Stores suppressions: the numbers and sip: URIs that no call of an account may reach.
//
// A suppression takes effect with its commit, without a lock that it shares with calls. A call is
// claimed before it is checked, and checked again before each INVITE. So a call that was claimed
// before the commit is found by a search after it, and a call that is claimed later sees the
// suppression.

import type { Pool, PoolClient } from 'pg';
import type {
  SuppressingApp,
  Suppression,
  SuppressionReason,
} from '../../calls/rules/suppression.ts';
import type { Database } from '../database.ts';
import { joined, sql } from '../sql.ts';
import { inTransaction } from '../transaction.ts';
import { becomeRuled } from './ruled-accounts.ts';

export type StoredSuppression = Suppression & {
  readonly address: string;
  readonly createdAt: Date;
  /** The app that stored the suppression last. */
  readonly appId: string;
};

export type SuppressionPage = {
  readonly suppressions: readonly StoredSuppression[];
  /** The last address of the page. Undefined on the last page. */
  readonly next?: string;
};

export type Suppressions = {
  /**
   * Stores suppressions by address, and replaces those that the account has.
   *
   * @returns the number of replaced ones
   */
  put(app: SuppressingApp, suppressions: ReadonlyMap<string, Suppression>): Promise<number>;
  /** @returns undefined if the address is not suppressed, or no longer */
  find(accountId: string, address: string): Promise<StoredSuppression | undefined>;
  /** Lists suppressions that have not expired, by address, from after the address `after`. */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after?: string },
  ): Promise<SuppressionPage>;
  /** @returns false if the address had no suppression */
  remove(accountId: string, address: string): Promise<boolean>;
  /** Returns the suppressions of those addresses that have one. */
  check(accountId: string, addresses: readonly string[]): Promise<ReadonlyMap<string, Suppression>>;
};

/** The condition for a suppression that has not expired. */
export const inForce = sql`(until is null or until > clock_timestamp())`;

type Row = {
  readonly address: string;
  readonly reason: SuppressionReason;
  readonly source: string;
  readonly until: Date | null;
  readonly created_at: Date;
  readonly app_id: string;
};

const columns = sql`address, reason, source, until, created_at, app_id`;

// Sorted, so that two imports of the same numbers lock rows in the same order.
const putStatement = `
with stored as (
  insert into suppressions (account_id, app_id, address, reason, source, until, created_at)
  select $1, $2, address, reason, source, until, clock_timestamp()
  from unnest($3::text[], $4::text[], $5::text[], $6::timestamptz[])
    as given (address, reason, source, until)
  order by address collate "C"
  on conflict (account_id, address) do update
    set reason = excluded.reason, source = excluded.source, until = excluded.until, app_id = excluded.app_id
  returning xmax <> 0 as was_there
)
select count(*) filter (where was_there)::integer as replaced from stored`;

export function createSuppressions({
  pool,
  reads,
}: Pick<Database, 'pool' | 'reads'>): Suppressions {
  return {
    put: (app, suppressions) => put(pool, app, suppressions),
    async find(accountId, address) {
      const { rows } = await reads(accountId).query<Row>(
        sql`select ${columns} from suppressions
          where account_id = ${accountId} and address = ${address} and ${inForce}`,
      );
      return rows.map(toStored)[0];
    },
    async list(accountId, { limit, after }) {
      const conditions = [
        sql`account_id = ${accountId}`,
        inForce,
        ...(after === undefined ? [] : [sql`address > ${after}`]),
      ];
      // One extra row shows whether there is another page.
      const { rows } = await reads(accountId).query<Row>(
        sql`select ${columns} from suppressions where ${joined(conditions, ' and ')}
          order by address limit ${limit + 1}`,
      );
      const page = rows.slice(0, limit).map(toStored);
      const next = rows.length > limit ? page.at(-1)?.address : undefined;
      return { suppressions: page, ...(next === undefined ? {} : { next }) };
    },
    async remove(accountId, address) {
      const { rowCount } = await pool.query(
        'delete from suppressions where account_id = $1 and address = $2',
        [accountId, address],
      );
      return rowCount === 1;
    },
    async check(accountId, addresses) {
      const { rows } = await reads(accountId).query<Row>(
        sql`select ${columns} from suppressions
          where account_id = ${accountId} and address = any(${addresses}::text[]) and ${inForce}`,
      );
      return new Map(rows.map((row) => [row.address, toSuppression(row)]));
    },
  };
}

async function put(
  pool: Pool,
  app: SuppressingApp,
  suppressions: ReadonlyMap<string, Suppression>,
): Promise<number> {
  return await inTransaction(pool, async (client) => {
    await becomeRuled(client, app.accountId);
    return await putAll(client, app, suppressions);
  });
}

async function putAll(
  client: PoolClient,
  { accountId, appId }: SuppressingApp,
  suppressions: ReadonlyMap<string, Suppression>,
): Promise<number> {
  const given = [...suppressions];
  const { rows } = await client.query<{ replaced: number }>({
    name: 'put suppressions',
    text: putStatement,
    values: [
      ...[accountId, appId, given.map(([address]) => address)],
      given.map(([, { reason }]) => reason),
      given.map(([, { source }]) => source),
      given.map(([, { until }]) => until ?? null),
    ],
  });
  return rows[0]?.replaced ?? 0;
}

function toStored(row: Row): StoredSuppression {
  const { address, created_at: createdAt, app_id: appId } = row;
  return { address, ...toSuppression(row), createdAt, appId };
}

function toSuppression({ reason, source, until }: Row): Suppression {
  return { reason, source, ...(until === null ? {} : { until }) };
}
