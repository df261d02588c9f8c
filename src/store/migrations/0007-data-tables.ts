// Data tables: definitions, and rows as validated JSON, so that no caller's name becomes SQL.

import type { Migration } from './migration.ts';

export const dataTables: Migration = {
  version: 7,
  name: 'data-tables',
  sql: `
create table data_tables (
  account_id text not null,
  name text not null,
  definition jsonb not null,
  created_at timestamptz(3) not null,
  primary key (account_id, name)
);
create table data_rows (
  sys_id text primary key,
  account_id text not null,
  table_name text not null,
  row jsonb not null,
  created_on timestamptz(3) not null,
  updated_on timestamptz(3) not null,
  created_by text not null,
  updated_by text not null
);
create index data_rows_by_table on data_rows (account_id, table_name, created_on);
`,
};
