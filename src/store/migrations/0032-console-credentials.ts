// The credentials that opened a console session: it ends with them.

import type { Migration } from './migration.ts';

export const consoleCredentials: Migration = {
  version: 32,
  name: 'console credentials',
  sql: `
-- Ids of credentials of the app. Rows of an older version have none and are not accepted.
alter table console_links add column opened_by text[];
alter table console_sessions add column opened_by text[];
`,
};
