// A test run is asked for by the stream that it was published with, where its bot is not known yet.

import type { Migration } from './migration.ts';

export const testRunsById: Migration = {
  version: 16,
  name: 'test-runs-by-id',
  sql: 'create index test_runs_by_id on test_runs (account_id, run_id);',
};
