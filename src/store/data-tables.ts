// Stores data table definitions, and the tables' rows.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../calls/ports.ts';
import type { Database } from './database.ts';
import type { TableDefinition } from './table-definition.ts';

export type DefinedTable = TableDefinition & { readonly accountId: string };

/** The columns that the service adds to a row. */
export type StoredRow = {
  readonly sysId: string;
  readonly createdOn: Date;
  readonly updatedOn: Date;
  readonly createdBy: string;
  readonly updatedBy: string;
};

export type DataTables = {
  /**
   * Stores a definition. Existing rows don't change.
   *
   * @returns false if a table with that name already exists and `replace` is false
   */
  define(table: DefinedTable, options: { readonly replace: boolean }): Promise<boolean>;
  /** Returns the tables of all accounts, ordered by account and name. */
  list(): Promise<readonly DefinedTable[]>;
  find(accountId: string, name: string): Promise<TableDefinition | undefined>;
  /** Inserts `row`, which the caller has checked against the definition. */
  insert(table: DefinedTable, row: object, appId: string): Promise<StoredRow>;
};

const insertTable = `
insert into data_tables (account_id, name, definition, created_at) values ($1, $2, $3, $4)
on conflict (account_id, name) do`;

export function createDataTables({
  database: { pool },
  clock,
}: {
  readonly database: Pick<Database, 'pool'>;
  readonly clock: Clock;
}): DataTables {
  return {
    async define({ accountId, ...definition }, { replace }) {
      const { rowCount } = await pool.query(
        `${insertTable} ${replace ? 'update set definition = excluded.definition' : 'nothing'}`,
        [accountId, definition.name, definition, clock.now()],
      );
      return rowCount === 1;
    },
    async list() {
      const { rows } = await pool.query<{ account_id: string; definition: TableDefinition }>(
        'select account_id, definition from data_tables order by account_id, name',
      );
      return rows.map((row) => ({ accountId: row.account_id, ...row.definition }));
    },
    async find(accountId, name) {
      const { rows } = await pool.query<{ definition: TableDefinition }>(
        'select definition from data_tables where account_id = $1 and name = $2',
        [accountId, name],
      );
      return rows[0]?.definition;
    },
    async insert({ accountId, name }, row, appId) {
      const sysId = `sys-${randomUUID()}`;
      const now = clock.now();
      await pool.query(
        `insert into data_rows (sys_id, account_id, table_name, row, created_on, updated_on, created_by, updated_by)
         values ($1, $2, $3, $4, $5, $5, $6, $6)`,
        [sysId, accountId, name, row, now, appId],
      );
      return { sysId, createdOn: now, updatedOn: now, createdBy: appId, updatedBy: appId };
    },
  };
}
