// What happened in a call and is no event of it: the bot's marks, commands, words.

import type { Migration } from './migration.ts';

export const callNotes: Migration = {
  version: 27,
  name: 'call notes',
  sql: `
-- JSON, compressed, written with what stands beside it.
alter table call_captures add column notes bytea;
`,
};
