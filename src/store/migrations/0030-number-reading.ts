// How numbers without `+` are read that an app has called. Null, for the apps that there are: only if they are valid with a `+`.

import type { Migration } from './migration.ts';

export const numberReading: Migration = {
  version: 30,
  name: 'number-reading',
  sql: `
alter table apps add column default_country text, add column bare_numbers text;
`,
};
