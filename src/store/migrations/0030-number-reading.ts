// How an app has numbers without `+` read. Null, as for existing apps: only if valid with a `+`.

import type { Migration } from './migration.ts';

export const numberReading: Migration = {
  version: 30,
  name: 'number-reading',
  sql: `
alter table apps add column default_country text, add column bare_numbers text;
`,
};
