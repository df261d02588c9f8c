// Connections to model providers; what is secret in them is sealed.

import { index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import { bytea, instant } from '../columns.ts';

export const connections = pgTable(
  'connections',
  {
    connectionId: text('connection_id').primaryKey(),
    accountId: text('account_id').notNull(),
    provider: text('provider').notNull(),
    status: text('status').notNull(),
    /** What the create body said, secrets left out. */
    settings: jsonb('settings').notNull(),
    /** JSON of the secret values, encrypted. */
    secrets: bytea('secrets').notNull(),
    createdOn: instant('created_on').notNull(),
    modifiedOn: instant('modified_on').notNull(),
  },
  (table) => [
    index('connections_by_account').on(
      table.accountId,
      table.createdOn.desc(),
      table.connectionId.desc(),
    ),
  ],
);
