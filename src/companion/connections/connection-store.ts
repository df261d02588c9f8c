// Connections in SQL, always within an account.

import { and, desc, eq, ne, sql } from 'drizzle-orm';
import type { Database } from '../../store/database.ts';
import { connections } from '../../store/schema.ts';
import type { Connection, ConnectionFilter, ConnectionList } from './connection-schemas.ts';

type Db = Database['db'];
type Row = typeof connections.$inferSelect;

export async function listConnections(
  db: Db,
  accountId: string,
  { provider, status, limit }: ConnectionFilter,
): Promise<ConnectionList> {
  const rows = await db
    .select({
      connectionId: connections.connectionId,
      name: connections.name,
      provider: connections.provider,
      model: connections.model,
      status: connections.status,
      createdOn: connections.createdOn,
      modifiedOn: connections.modifiedOn,
      // Counted before the limit, in the same instant; the limit is 1 at least, so that a row carries it where any match.
      total: sql<number>`(count(*) over ())::integer`,
    })
    .from(connections)
    .where(
      and(
        eq(connections.accountId, accountId),
        provider === undefined ? undefined : eq(connections.provider, provider),
        status === undefined ? undefined : eq(connections.status, status),
      ),
    )
    .orderBy(desc(connections.createdOn), desc(connections.connectionId))
    .limit(limit);
  return {
    connections: rows.map(({ total: _, ...row }) => ({ ...summaryOf(row), ...instantsOf(row) })),
    total: rows[0]?.total ?? 0,
  };
}

export async function findConnection(
  db: Db,
  accountId: string,
  connectionId: string,
): Promise<Connection | undefined> {
  const [row] = await db
    .select()
    .from(connections)
    .where(and(eq(connections.accountId, accountId), eq(connections.connectionId, connectionId)));
  return row === undefined ? undefined : connectionOf(row);
}

export async function insertConnection(
  db: Db,
  row: typeof connections.$inferInsert,
): Promise<Connection> {
  const [stored] = await db.insert(connections).values(row).returning();
  if (stored === undefined) throw new Error('an insert returned no row');
  return connectionOf(stored);
}

/** Undefined: no such connection, or one of provider `API`. */
export async function replaceKey(
  db: Db,
  accountId: string,
  connectionId: string,
  key: { readonly masked: string; readonly sealed: Buffer; readonly modifiedOn: Date },
): Promise<Connection | undefined> {
  const [row] = await db
    .update(connections)
    .set({
      settings: sql`jsonb_set(${connections.settings}, '{fields,API_KEY}', to_jsonb(${key.masked}::text))`,
      secrets: key.sealed,
      modifiedOn: key.modifiedOn,
    })
    .where(
      and(
        eq(connections.accountId, accountId),
        eq(connections.connectionId, connectionId),
        ne(connections.provider, 'API'),
      ),
    )
    .returning();
  return row === undefined ? undefined : connectionOf(row);
}

function connectionOf(row: Row): Connection {
  return { ...summaryOf(row), fields: { ...row.settings.fields }, ...instantsOf(row) };
}

function summaryOf(row: Omit<Row, 'accountId' | 'settings' | 'secrets'>) {
  return {
    connectionId: row.connectionId,
    connectionName: row.name,
    provider: row.provider as Connection['provider'],
    model: row.model,
    status: row.status as Connection['status'],
  };
}

function instantsOf(row: Pick<Row, 'createdOn' | 'modifiedOn'>) {
  return { createdOn: row.createdOn.toISOString(), modifiedOn: row.modifiedOn.toISOString() };
}
