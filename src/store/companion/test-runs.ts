// Batch test runs, as the test runner last told them.

import { jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const testRuns = pgTable(
  'test_runs',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    runId: text('run_id').notNull(),
    suiteName: text('suite_name').notNull(),
    document: jsonb('document').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.botId, table.runId] })],
);
