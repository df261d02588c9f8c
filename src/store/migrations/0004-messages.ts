// What bots and users said to each other.

import type { Migration } from './migration.ts';

export const messages: Migration = {
  version: 4,
  name: 'messages',
  sql: `
create table messages (
  account_id text not null,
  bot_id text not null,
  message_id text not null,
  created_on timestamptz(3) not null,
  document jsonb not null,
  primary key (account_id, bot_id, message_id)
);
`,
};
