// Connections to model providers; what is secret in them is sealed.

import { index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import { bytea, instant } from '../columns.ts';

export const providers = ['API', 'VendorA AI', 'HostedVendorA AI', 'VendorB'] as const;
export type Provider = (typeof providers)[number];

export const connections = pgTable(
  'connections',
  {
    connectionId: text('connection_id').primaryKey(),
    accountId: text('account_id').notNull(),
    name: text('name').notNull(),
    provider: text('provider').$type<Provider>().notNull(),
    model: text('model').notNull(),
    /** As it is read: `ACTIVE` or `INACTIVE`. */
    status: text('status').$type<'ACTIVE' | 'INACTIVE'>().notNull(),
    /** What else the create body said, with masks in the place of secrets: a read needs no key. */
    settings: jsonb('settings')
      .$type<{ readonly fields: Readonly<Record<string, string>> }>()
      .notNull(),
    /** JSON of the secret values where they stood in the body, encrypted. */
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
