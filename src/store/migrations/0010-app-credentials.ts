// API keys are looked up, and credentials that were rotated out live on for a while.

import type { Migration } from './migration.ts';

export const appCredentials: Migration = {
  version: 10,
  name: 'app-credentials',
  sql: `
alter table apps
  add column previous_jwt_secret bytea,
  add column previous_jwt_secret_until timestamptz(3),
  add column previous_api_key_hash text,
  add column previous_api_key_until timestamptz(3);
create unique index apps_api_key on apps (api_key_hash);
create unique index apps_previous_api_key on apps (previous_api_key_hash);
`,
};
