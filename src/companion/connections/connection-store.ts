// Stores connections in the database. Each statement is restricted to one account.

import type { Pool } from 'pg';
import type { Queries } from '../../store/queries.ts';
import { all, sql } from '../../store/sql.ts';
import type {
  Connection,
  ConnectionFilter,
  ConnectionList,
  Provider,
} from './connection-schemas.ts';

type Summary = {
  readonly connectionId: string;
  readonly connectionName: string;
  readonly provider: Provider;
  readonly model: string;
  readonly status: 'ACTIVE' | 'INACTIVE';
  readonly createdOn: Date;
  readonly modifiedOn: Date;
};
type Whole = Summary & { readonly fields: Readonly<Record<string, string>> };

const summary = sql`
  connection_id as "connectionId", name as "connectionName", provider, model, status,
  created_on as "createdOn", modified_on as "modifiedOn"`;
const whole = sql`${summary}, settings->'fields' as fields`;

export async function listConnections(
  queries: Queries,
  account: string,
  { provider, status, limit }: ConnectionFilter,
): Promise<ConnectionList> {
  const wanted = all([
    sql`account_id = ${account}`,
    provider && sql`provider = ${provider}`,
    status && sql`status = ${status}`,
  ]);
  // The statement counts the total before applying the limit. Since the limit is at least 1, we get
  // a row with the total if there are any matches.
  const { rows } = await queries.query<Summary & { readonly total: number }>(sql`
    select ${summary}, (count(*) over ())::integer as total from connections where ${wanted}
    order by created_on desc, connection_id desc limit ${limit}`);
  const total = rows[0]?.total ?? 0;
  return { connections: rows.map(({ total: _, ...row }) => toResponse(row)), total };
}

export async function findConnection(
  queries: Queries,
  account: string,
  id: string,
): Promise<Connection | undefined> {
  const { rows } = await queries.query<Whole>({
    name: 'companion-find-connection',
    text: `select ${whole.text} from connections where account_id = $1 and connection_id = $2`,
    values: [account, id],
  });
  return rows.map(toResponse)[0];
}

export type NewRow = Omit<Whole, 'fields'> & {
  readonly accountId: string;
  /**
   * The remaining fields from the request body. Secrets are masked, so no key is needed for
   * reading.
   */
  readonly settings: object;
  /** The secret values as encrypted JSON, structured like the body. */
  readonly secrets: Buffer;
};

export async function insertConnection(pool: Pool, row: NewRow): Promise<Connection | undefined> {
  const { rows } = await pool.query<Whole>(sql`
    insert into connections (connection_id, account_id, name, provider, model, status, settings, secrets, created_on, modified_on)
    values (${row.connectionId}, ${row.accountId}, ${row.connectionName}, ${row.provider}, ${row.model}, ${row.status},
      ${JSON.stringify(row.settings)}, ${row.secrets}, ${row.createdOn}, ${row.modifiedOn})
    returning ${whole}`);
  return rows.map(toResponse)[0];
}

export type NewKey = { readonly mask: string; readonly sealed: Buffer; readonly modifiedOn: Date };

/** @returns undefined if the connection doesn't exist, or if its provider is `API` */
export async function replaceKey(
  pool: Pool,
  account: string,
  id: string,
  key: NewKey,
): Promise<Connection | undefined> {
  const { rows } = await pool.query<Whole>(sql`
    update connections set settings = jsonb_set(settings, '{fields,API_KEY}', to_jsonb(${key.mask}::text)),
      secrets = ${key.sealed}, modified_on = ${key.modifiedOn}
    where account_id = ${account} and connection_id = ${id} and provider <> 'API'
    returning ${whole}`);
  return rows.map(toResponse)[0];
}

/** @returns false if the connection doesn't exist */
export async function deleteConnection(pool: Pool, account: string, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'delete from connections where account_id = $1 and connection_id = $2',
    [account, id],
  );
  return rowCount === 1;
}

function toResponse<Row extends { readonly createdOn: Date; readonly modifiedOn: Date }>(row: Row) {
  return {
    ...row,
    createdOn: row.createdOn.toISOString(),
    modifiedOn: row.modifiedOn.toISOString(),
  };
}
