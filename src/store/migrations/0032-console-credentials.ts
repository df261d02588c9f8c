// What a console session was opened with: it ends with these credentials.

import type { Migration } from './migration.ts';

export const consoleCredentials: Migration = {
  version: 32,
  name: 'console credentials',
  sql: `
-- Ids of the credentials of the app. Null, of an older version: what opened it is not known, so it is not taken.
alter table console_links add column opened_by text[];
alter table console_sessions add column opened_by text[];
`,
};
