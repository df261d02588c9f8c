// Data tables as they are defined, and their rows.

import { randomUUID } from 'node:crypto';
import { and, asc, eq } from 'drizzle-orm';
import type { Clock } from '../calls/ports.ts';
import type { Database } from './database.ts';
import { dataRows, dataTables } from './schema.ts';
import type { TableDefinition } from './table-definition.ts';

export type DefinedTable = TableDefinition & { readonly accountId: string };

export type StoredRow = Pick<
  typeof dataRows.$inferSelect,
  'sysId' | 'createdOn' | 'updatedOn' | 'createdBy' | 'updatedBy'
>;

export type DataTables = {
  /** False: there is a table of that name, and it was not to be replaced. Rows stay as they are. */
  define(table: DefinedTable, options: { readonly replace: boolean }): Promise<boolean>;
  /** Of every account, by account and name. */
  list(): Promise<readonly DefinedTable[]>;
  find(accountId: string, name: string): Promise<TableDefinition | undefined>;
  /** `row`: checked against the definition. */
  insert(table: DefinedTable, row: object, appId: string): Promise<StoredRow>;
};

export function createDataTables({
  database: { db },
  clock,
}: {
  readonly database: Pick<Database, 'db'>;
  readonly clock: Clock;
}): DataTables {
  return {
    async define({ accountId, ...definition }, { replace }) {
      const insert = db
        .insert(dataTables)
        .values({ accountId, name: definition.name, definition, createdAt: clock.now() });
      const target = [dataTables.accountId, dataTables.name];
      const stored = replace
        ? insert.onConflictDoUpdate({ target, set: { definition } })
        : insert.onConflictDoNothing({ target });
      return (await stored.returning({ name: dataTables.name })).length === 1;
    },
    async list() {
      const { accountId, definition, name } = dataTables;
      const rows = await db
        .select({ accountId, definition })
        .from(dataTables)
        .orderBy(asc(accountId), asc(name));
      return rows.map((row) => ({ accountId: row.accountId, ...row.definition }));
    },
    async find(accountId, name) {
      const [found] = await db
        .select({ definition: dataTables.definition })
        .from(dataTables)
        .where(and(eq(dataTables.accountId, accountId), eq(dataTables.name, name)));
      return found?.definition;
    },
    async insert({ accountId, name: tableName }, row, appId) {
      const now = clock.now();
      const system = {
        sysId: `sys-${randomUUID()}`,
        createdOn: now,
        updatedOn: now,
        createdBy: appId,
        updatedBy: appId,
      };
      await db.insert(dataRows).values({ ...system, accountId, tableName, row });
      return system;
    },
  };
}
