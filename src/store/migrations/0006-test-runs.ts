// Batch test runs, as the test runner last told them.

import type { Migration } from './migration.ts';

export const testRuns: Migration = {
  version: 6,
  name: 'test-runs',
  sql: `
create table test_runs (
  account_id text not null,
  bot_id text not null,
  run_id text not null,
  suite_name text not null,
  document jsonb not null,
  -- Object of the result file.
  file_name text,
  is_completed boolean not null,
  -- Of what was told: the later one is the higher one.
  version bigint not null,
  updated_at timestamptz(3) not null,
  primary key (account_id, bot_id, run_id)
);
`,
};
