// Contact-center configuration as it was imported.

import { jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const importedRecords = pgTable(
  'imported_records',
  {
    accountId: text('account_id').notNull(),
    orgId: text('org_id').notNull(),
    type: text('type').notNull(),
    recordId: text('record_id').notNull(),
    botId: text('bot_id').notNull(),
    record: jsonb('record').notNull(),
    importedAt: instant('imported_at').notNull(),
    importedBy: text('imported_by').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.orgId, table.type, table.recordId] })],
);
