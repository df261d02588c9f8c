// Batch test runs, as the test runner last told them.

import { bigint, boolean, index, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const testRuns = pgTable(
  'test_runs',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    runId: text('run_id').notNull(),
    suiteName: text('suite_name').notNull(),
    document: jsonb('document').notNull(),
    /** Object of the result file. */
    fileName: text('file_name'),
    isCompleted: boolean('is_completed').notNull(),
    /** Of what was told: the later one is the higher one. */
    version: bigint('version', { mode: 'number' }).notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.botId, table.runId] }),
    index('test_runs_by_age').on(table.updatedAt),
    index('test_runs_by_id').on(table.accountId, table.runId),
  ],
);
