// What bots and users said to each other.

import { jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const messages = pgTable(
  'messages',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    messageId: text('message_id').notNull(),
    createdOn: instant('created_on').notNull(),
    document: jsonb('document').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.botId, table.messageId] })],
);
