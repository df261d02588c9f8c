// What bots and users said to each other. A message is kept as the JSON text that answers carry, so that ten thousand of them
// need no parsing; what filters ask for stands beside it. Triggers keep `message_counts` (the migration has them).

import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  date,
  index,
  jsonb,
  pgTable,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core';
import { instant } from '../columns.ts';

export const messages = pgTable(
  'messages',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    messageId: text('message_id').notNull(),
    /** When it was published, in microseconds: an earlier version never replaces a later one. */
    version: bigint('version', { mode: 'number' }).notNull(),
    createdOn: instant('created_on').notNull(),
    userId: text('user_id').notNull(),
    sessionId: text('session_id').notNull(),
    channel: text('channel').notNull(),
    callId: text('call_id'),
    /** Of an alert or action task: version 2 of the history leaves it out. */
    isTask: boolean('is_task').notNull(),
    tags: jsonb('tags'),
    document: text('document').notNull(),
    /** JSON, too: what is answered only when it is asked for. */
    traceId: text('trace_id'),
    agentInfo: text('agent_info'),
    secureForm: text('secure_form'),
  },
  (table) => {
    const inOrder = [table.createdOn, table.messageId, table.isTask] as const;
    const ofBot = [table.accountId, table.botId] as const;
    return [
      primaryKey({ columns: [table.accountId, table.botId, table.messageId] }),
      index('messages_of_channel').on(...ofBot, table.channel, ...inOrder),
      index('messages_of_user').on(...ofBot, table.userId, table.channel, ...inOrder),
      index('messages_of_session').on(...ofBot, table.sessionId, ...inOrder),
      index('messages_of_call')
        .on(...ofBot, table.callId, ...inOrder)
        .where(sql`call_id is not null`),
      index('messages_by_tags')
        .using('gin', table.tags.op('jsonb_path_ops'))
        .where(sql`tags is not null`),
      // Not on `created_on` itself, which orders pages: they must not be looked for among everybody's messages.
      index('messages_by_age').on(sql`(created_on at time zone 'utc'::text)`),
    ];
  },
);

/** How many messages a user had a day, and the bot (user ''): counting millions would take longer than reading a page. */
export const messageCounts = pgTable(
  'message_counts',
  {
    accountId: text('account_id').notNull(),
    botId: text('bot_id').notNull(),
    userId: text('user_id').notNull(),
    channel: text('channel').notNull(),
    isTask: boolean('is_task').notNull(),
    /** Of UTC. */
    day: date('day').notNull(),
    total: bigint('total', { mode: 'number' }).notNull(),
  },
  (table) => [
    primaryKey({
      columns: [table.accountId, table.botId, table.userId, table.channel, table.isTask, table.day],
    }),
  ],
);
