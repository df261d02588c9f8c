// What was published long ago is found without reading everything.

import type { Migration } from './migration.ts';

export const companionRetention: Migration = {
  version: 15,
  name: 'companion-retention',
  sql: `
create index conversations_by_age on conversations (version);
create index test_runs_by_age on test_runs (updated_at);
`,
};
