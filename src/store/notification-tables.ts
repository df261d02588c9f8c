// What is owed to receivers, what was tried, and which receivers fail. A part of the schema.

import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from './columns.ts';

export const notifications = pgTable(
  'notifications',
  {
    eventId: text('event_id').primaryKey(),
    callId: text('call_id').notNull(),
    appId: text('app_id').notNull(),
    sequence: integer('sequence').notNull(),
    /** The raw body: signed afresh for each attempt, but never built again. */
    body: text('body').notNull(),
    /** pending, delivered, failed (a dead letter). */
    state: text('state').notNull(),
    attempts: integer('attempts').notNull(),
    createdAt: instant('created_at').notNull(),
    deliveredAt: instant('delivered_at'),
    /** When a refusal (4xx) first held its successors up. */
    refusedAt: instant('refused_at'),
    /** Null only where a version before dead letters wrote it. */
    accountId: text('account_id'),
    botId: text('bot_id'),
    /** Of a dead letter; null again once it is replayed. */
    failedAt: instant('failed_at'),
    /** expired (24 h are over), gone (410), forbidden (may not be sent there). */
    failure: text('failure'),
    /** When it was replayed last: the 24 hours, and the schedule, begin there. Null: when it was created. */
    owedSince: instant('owed_since'),
    /** Attempts before that. */
    attemptsBefore: integer('attempts_before').notNull().default(0),
  },
  (table) => [
    index('notifications_by_call').on(table.callId, table.sequence),
    // Known by a column that a delivery does not touch, so that deliveries stay cheap updates.
    index('notifications_dead')
      .on(table.accountId, table.botId, table.failedAt.desc(), table.eventId.desc())
      .where(sql`failed_at is not null`),
  ],
);

/** One row for each call that owes notifications: what a dispatcher leases, so that a call leaves in order from one place. */
export const notificationLanes = pgTable(
  'notification_lanes',
  {
    callId: text('call_id').primaryKey(),
    nextAttemptAt: instant('next_attempt_at').notNull(),
    leasedBy: text('leased_by'),
    leasedUntil: instant('leased_until'),
    /** Of the notification URL: scheme, host, port. */
    origin: text('origin').notNull().default(''),
  },
  (table) => [index('notification_lanes_due').on(table.origin, table.nextAttemptAt)],
);

/** Who had dead letters sent again; a part of the delivery log. */
export const notificationReplays = pgTable(
  'notification_replays',
  {
    replayId: bigint('replay_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    eventId: text('event_id').notNull(),
    callId: text('call_id').notNull(),
    replayedAt: instant('replayed_at').notNull(),
    /** An app's id. */
    replayedBy: text('replayed_by').notNull(),
  },
  (table) => [
    index('notification_replays_by_call').on(table.callId),
    index('notification_replays_by_time').on(table.replayedAt),
  ],
);

/** Receivers that fail, for each app that uses them; those that do not have no row. */
export const notificationEndpoints = pgTable(
  'notification_endpoints',
  {
    appId: text('app_id').notNull(),
    origin: text('origin').notNull(),
    accountId: text('account_id').notNull(),
    /** Null: it has recovered, which is yet to be told. */
    failingSince: instant('failing_since'),
    /** In a row, on all nodes. */
    failures: integer('failures').notNull(),
    lastFailedAt: instant('last_failed_at'),
    lastError: text('last_error'),
    recoveredAt: instant('recovered_at'),
    /** The beginning of the streak that an alert was sent for. */
    toldSince: instant('told_since'),
    /** A node is sending an alert. */
    claimedUntil: instant('claimed_until'),
  },
  (table) => [primaryKey({ columns: [table.appId, table.origin] })],
);

/** The delivery log, kept for 7 days. */
export const deliveryAttempts = pgTable(
  'delivery_attempts',
  {
    attemptId: bigint('attempt_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    eventId: text('event_id').notNull(),
    callId: text('call_id').notNull(),
    attempt: integer('attempt').notNull(),
    startedAt: instant('started_at').notNull(),
    durationMs: integer('duration_ms').notNull(),
    /** Absent where no response came. */
    responseStatus: integer('response_status'),
    error: text('error'),
    delivered: boolean('delivered').notNull(),
  },
  (table) => [
    index('delivery_attempts_by_call').on(table.callId),
    index('delivery_attempts_by_time').on(table.startedAt),
  ],
);
