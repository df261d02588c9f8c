// Whose a bot is, and its other name.

import { pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const bots = pgTable(
  'bots',
  {
    botId: text('bot_id').primaryKey(),
    /** The other identifier that requests may use for it (`st-…`). */
    streamId: text('stream_id'),
    accountId: text('account_id').notNull(),
    /** Logo, the `icon` of its history. */
    iconUrl: text('icon_url'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [uniqueIndex('bots_stream_id').on(table.streamId)],
);
