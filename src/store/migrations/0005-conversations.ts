// Conversation sessions of the contact center.

import type { Migration } from './migration.ts';

export const conversations: Migration = {
  version: 5,
  name: 'conversations',
  sql: `
create table conversations (
  account_id text not null,
  bot_id text not null,
  session_id text not null,
  -- When it was published, in microseconds: an earlier version never replaces a later one.
  version bigint not null,
  document jsonb not null,
  primary key (account_id, bot_id, session_id)
);
`,
};
