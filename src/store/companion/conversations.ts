// Conversation sessions of the contact center.

import { bigint, index, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';

export const conversations = pgTable(
  'conversations',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    sessionId: text('session_id').notNull(),
    /** When it was published, in microseconds: an earlier version never replaces a later one. */
    version: bigint('version', { mode: 'number' }).notNull(),
    document: jsonb('document').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.botId, table.sessionId] }),
    index('conversations_by_age').on(table.version),
  ],
);
