// Whose a bot is, and its other name.

import type { Migration } from './migration.ts';

export const bots: Migration = {
  version: 2,
  name: 'bots',
  sql: `
create table bots (
  bot_id text primary key,
  -- The other identifier that requests may use for it.
  stream_id text,
  account_id text not null,
  icon_url text,
  created_at timestamptz(3) not null
);
create unique index bots_stream_id on bots (stream_id);
`,
};
