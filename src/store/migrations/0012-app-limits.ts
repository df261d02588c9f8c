// What an app may dial, and how much: guards against toll fraud.

import type { Migration } from './migration.ts';

export const appLimits: Migration = {
  version: 12,
  name: 'app-limits',
  sql: `
alter table apps add column limits jsonb;

-- One row for each app with limits. Whoever accepts calls of the app holds it, so that nodes count one after the other.
create table app_usage (
  app_id text primary key,
  -- Since 1970, in UTC.
  day integer not null,
  calls integer not null
);
`,
};
