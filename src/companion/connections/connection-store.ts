// Connections in SQL, always within an account.

import { and, desc, eq, ne, type Placeholder, sql } from 'drizzle-orm';
import type { Database } from '../../store/database.ts';
import { connections } from '../../store/schema.ts';
import type { Connection, ConnectionFilter, ConnectionList } from './connection-schemas.ts';

type Db = Database['db'];

const { accountId, connectionId, provider, model, status, createdOn, modifiedOn } = connections;
const summary = {
  connectionId,
  connectionName: connections.name,
  provider,
  model,
  status,
  createdOn,
  modifiedOn,
};
const whole = {
  ...summary,
  fields: sql<Record<string, string>>`${connections.settings}->'fields'`,
};

export async function listConnections(
  db: Db,
  account: string,
  filter: ConnectionFilter,
): Promise<ConnectionList> {
  const rows = await db
    // Counted before the limit, in the same instant; the limit is 1 at least, so that a row carries it where any match.
    .select({ ...summary, total: sql<number>`(count(*) over ())::integer` })
    .from(connections)
    .where(
      and(
        eq(accountId, account),
        filter.provider && eq(provider, filter.provider),
        filter.status && eq(status, filter.status),
      ),
    )
    .orderBy(desc(createdOn), desc(connectionId))
    .limit(filter.limit);
  const total = rows[0]?.total ?? 0;
  return { connections: rows.map(({ total: _, ...row }) => written(row)), total };
}

/** Prepared: to build the statement anew costs as much as to run it. */
export function connectionFinder(db: Db) {
  const statement = db
    .select(whole)
    .from(connections)
    .where(isOf(sql.placeholder('account'), sql.placeholder('id')))
    .prepare('companion-find-connection');
  return async (account: string, id: string): Promise<Connection | undefined> =>
    (await statement.execute({ account, id })).map(written)[0];
}

export async function insertConnection(
  db: Db,
  row: typeof connections.$inferInsert,
): Promise<Connection | undefined> {
  const rows = await db.insert(connections).values(row).returning(whole);
  return rows.map(written)[0];
}

export type NewKey = { readonly mask: string; readonly sealed: Buffer; readonly modifiedOn: Date };

/** Undefined: no such connection, or one of provider `API`. */
export async function replaceKey(
  db: Db,
  account: string,
  id: string,
  key: NewKey,
): Promise<Connection | undefined> {
  const settings = sql`jsonb_set(${connections.settings}, '{fields,API_KEY}', to_jsonb(${key.mask}::text))`;
  const rows = await db
    .update(connections)
    .set({ settings, secrets: key.sealed, modifiedOn: key.modifiedOn })
    .where(and(isOf(account, id), ne(provider, 'API')))
    .returning(whole);
  return rows.map(written)[0];
}

/** Its id; undefined: no such connection. */
export async function deleteConnection(
  db: Db,
  account: string,
  id: string,
): Promise<string | undefined> {
  const rows = await db.delete(connections).where(isOf(account, id)).returning({ connectionId });
  return rows[0]?.connectionId;
}

function isOf(account: string | Placeholder, id: string | Placeholder) {
  return and(eq(accountId, account), eq(connectionId, id));
}

function written<Row extends { readonly createdOn: Date; readonly modifiedOn: Date }>(row: Row) {
  return {
    ...row,
    createdOn: row.createdOn.toISOString(),
    modifiedOn: row.modifiedOn.toISOString(),
  };
}
