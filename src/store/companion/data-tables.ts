// Data tables: definitions, and rows as validated JSON, so that no caller's name becomes SQL.

import { index, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';
import type { TableDefinition } from '../table-definition.ts';

export const dataTables = pgTable(
  'data_tables',
  {
    accountId: text('account_id').notNull(),
    name: text('name').notNull(),
    definition: jsonb('definition').$type<TableDefinition>().notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.name] })],
);

export const dataRows = pgTable(
  'data_rows',
  {
    sysId: text('sys_id').primaryKey(),
    accountId: text('account_id').notNull(),
    tableName: text('table_name').notNull(),
    row: jsonb('row').notNull(),
    createdOn: instant('created_on').notNull(),
    updatedOn: instant('updated_on').notNull(),
    createdBy: text('created_by').notNull(),
    updatedBy: text('updated_by').notNull(),
  },
  (table) => [index('data_rows_by_table').on(table.accountId, table.tableName, table.createdOn)],
);
