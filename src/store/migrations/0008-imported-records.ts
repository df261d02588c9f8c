// Contact-center configuration as it was imported.

import type { Migration } from './migration.ts';

export const importedRecords: Migration = {
  version: 8,
  name: 'imported-records',
  sql: `
create table imported_records (
  account_id text not null,
  org_id text not null,
  type text not null,
  record_id text not null,
  bot_id text not null,
  record jsonb not null,
  imported_at timestamptz(3) not null,
  imported_by text not null,
  primary key (account_id, org_id, type, record_id)
);
`,
};
