// How long the tokens of an app may live. Null, for the apps that there are: as long as they say.

import type { Migration } from './migration.ts';

export const tokenLifetime: Migration = {
  version: 17,
  name: 'token-lifetime',
  sql: `
alter table apps add column token_max_ttl_s integer;
`,
};
