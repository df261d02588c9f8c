// Conversation sessions of the contact center.

import { jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const conversations = pgTable(
  'conversations',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    sessionId: text('session_id').notNull(),
    document: jsonb('document').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.botId, table.sessionId] })],
);
