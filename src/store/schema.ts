// The tables, in one SQL dialect for PostgreSQL and PGlite. The migrations under ./migrations create them; a test holds the two
// together. Timestamps are timestamptz(3), read as Date; JSON columns are jsonb, except signed bodies, which are text to
// the byte.

import { sql } from 'drizzle-orm';
import {
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { AppLimits } from '../calls/app-limits.ts';
import type { DialoutRequest } from '../calls/call-types.ts';
import type { CallEvent, TerminalEvent } from '../calls/contract/call-event.ts';
import type { StoredLeg } from '../calls/contract/stored-leg.ts';
import { bytea, instant } from './columns.ts';

export { bots } from './companion/bots.ts';
export { connections } from './companion/connections.ts';
export { conversations } from './companion/conversations.ts';
export { dataRows, dataTables } from './companion/data-tables.ts';
export { importedRecords } from './companion/imported-records.ts';
export { messageCounts, messages } from './companion/messages.ts';
export { testRuns } from './companion/test-runs.ts';
export {
  deliveryAttempts,
  notificationEndpoints,
  notificationLanes,
  notificationReplays,
  notifications,
} from './notification-tables.ts';

export const apps = pgTable(
  'apps',
  {
    appId: text('app_id').primaryKey(),
    accountId: text('account_id').notNull(),
    name: text('name').notNull(),
    /** Bot ids, or `*` for every bot of the account. */
    bots: jsonb('bots').$type<readonly string[]>().notNull(),
    scopes: jsonb('scopes').$type<readonly string[]>().notNull(),
    /** The one algorithm that this app's tokens are signed with. */
    jwtAlgorithm: text('jwt_algorithm').notNull(),
    /**
     * What its tokens are verified with, encrypted with SECRETS_KEY: the shared secret, or a JWKS document. Public keys are
     * sealed too, so that whoever can write this table cannot plant one.
     */
    jwtSecret: bytea('jwt_secret'),
    /** SHA-256 of the API key: it is random and long, so that a slow hash adds nothing. */
    apiKeyHash: text('api_key_hash'),
    createdAt: instant('created_at').notNull(),
    revokedAt: instant('revoked_at'),
    /** What was there before the last rotation, and until when it is taken. */
    previousJwtSecret: bytea('previous_jwt_secret'),
    previousJwtSecretUntil: instant('previous_jwt_secret_until'),
    previousApiKeyHash: text('previous_api_key_hash'),
    previousApiKeyUntil: instant('previous_api_key_until'),
    /** Null: none. */
    limits: jsonb('limits').$type<AppLimits>(),
    /** Null: a token may live as long as it says. */
    tokenMaxTtlS: integer('token_max_ttl_s'),
  },
  (table) => [
    uniqueIndex('apps_api_key').on(table.apiKeyHash),
    uniqueIndex('apps_previous_api_key').on(table.previousApiKeyHash),
  ],
);

/** What apps with limits have used. Held by whoever accepts calls of the app, so that nodes count one after the other. */
export const appUsage = pgTable('app_usage', {
  appId: text('app_id').primaryKey(),
  /** Since 1970, in UTC. */
  day: integer('day').notNull(),
  /** Accepted on that day. */
  calls: integer('calls').notNull(),
});

export const webhookSecrets = pgTable(
  'webhook_secrets',
  {
    secretId: text('secret_id').primaryKey(),
    appId: text('app_id').notNull(),
    /** `whsec_…`, encrypted. */
    secret: bytea('secret').notNull(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at'),
  },
  (table) => [index('webhook_secrets_app').on(table.appId)],
);

export const calls = pgTable(
  'calls',
  {
    callId: text('call_id').primaryKey(),
    sid: text('sid').notNull(),
    conversationId: text('conversation_id').notNull(),
    accountId: text('account_id').notNull(),
    appId: text('app_id').notNull(),
    botId: text('bot_id').notNull(),
    request: jsonb('request').$type<DialoutRequest>().notNull(),
    notifyUrl: text('notify_url'),
    /** JSON object of the caller's headers, encrypted. */
    notifyHeaders: bytea('notify_headers'),
    /** queued, dialing, ringing, answered, ended: for people and lists; the columns below are what decisions rest on. */
    state: text('state').notNull(),
    /** Status column of the interactions view. */
    status: text('status').notNull(),
    acceptedAt: instant('accepted_at').notNull(),
    /** The trunk that carries it; null: none, it is dialled directly. */
    trunk: text('trunk'),
    /** Not dialled any more after this. */
    dialBefore: instant('dial_before').notNull(),
    /** "An INVITE may have left": set before, and never dialled again. */
    dialStartedAt: instant('dial_started_at'),
    /** The process that dials it: `NODE_ID` and a random part of this start. */
    ownerId: text('owner_id'),
    leg: jsonb('leg').$type<StoredLeg>(),
    ringingAt: instant('ringing_at'),
    answeredAt: instant('answered_at'),
    answeredEvent: jsonb('answered_event').$type<CallEvent>(),
    endedAt: instant('ended_at'),
    endEvent: jsonb('end_event').$type<TerminalEvent>(),
    /** Facts before the answer, or the end, that the stream had not confirmed when it was stored: published again with it. */
    unpublishedEvents: jsonb('unpublished_events').$type<readonly CallEvent[]>(),
    endPublishedAt: instant('end_published_at'),
    outcome: text('outcome'),
    sipStatus: integer('sip_status'),
    idempotencyKey: text('idempotency_key'),
  },
  (table) => [
    index('calls_by_bot').on(
      table.accountId,
      table.botId,
      table.acceptedAt.desc(),
      table.callId.desc(),
    ),
    index('calls_by_idempotency_key').on(table.accountId, table.idempotencyKey),
    // Everything that somebody still has to do something about: a few thousand rows at most, whatever the table holds.
    index('calls_open').on(table.acceptedAt).where(sql`end_published_at is null`),
    // For retention. Not on `ended_at`: an index on a column that changes would make every end a costly update.
    index('calls_by_age').on(table.acceptedAt),
  ],
);

export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    appId: text('app_id').notNull(),
    botId: text('bot_id').notNull(),
    key: text('key').notNull(),
    /** SHA-256 of the canonical request. */
    requestHash: text('request_hash').notNull(),
    callId: text('call_id').notNull(),
    /** The stored answer: `{sid, callId, conversationId}`. */
    answer: jsonb('answer').$type<Readonly<Record<string, string>>>().notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.appId, table.botId, table.key] }),
    index('idempotency_keys_expiry').on(table.expiresAt),
  ],
);

/** Timeline of a call: every fact, once. */
export const callEvents = pgTable(
  'call_events',
  {
    callId: text('call_id').notNull(),
    eventSequence: integer('event_sequence').notNull(),
    eventId: text('event_id').notNull(),
    type: text('type').notNull(),
    time: instant('time').notNull(),
    data: jsonb('data').notNull(),
  },
  (table) => [primaryKey({ columns: [table.callId, table.eventId] })],
);

/** The processes that share this database. A row that is gone, or lost, is a process whose calls somebody else ends. */
export const nodes = pgTable('nodes', {
  /** `NODE_ID` and a random part of this start: what `calls.owner_id` says. */
  ownerId: text('owner_id').primaryKey(),
  nodeId: text('node_id').notNull(),
  version: text('version').notNull(),
  startedAt: instant('started_at').notNull(),
  renewedAt: instant('renewed_at').notNull(),
  leaseUntil: instant('lease_until').notNull(),
  /** Its lease ran out and another process said so: it may state nothing more. */
  lostAt: instant('lost_at'),
  calls: integer('calls').notNull(),
  draining: boolean('draining').notNull(),
});

/** The clock of a trunk with `callsPerSecond`. Microseconds, unlike the rest: a hundred calls a second are 10 ms apart. */
export const trunkPacing = pgTable('trunk_pacing', {
  trunk: text('trunk').primaryKey(),
  nextStartAt: timestamp('next_start_at', { withTimezone: true, mode: 'date' }).notNull(),
});

/** What a process took last from a source: asked for again where the answer was lost. */
export const callTakes = pgTable(
  'call_takes',
  {
    ownerId: text('owner_id').notNull(),
    /** A trunk; empty: the calls that need none. */
    source: text('source').notNull(),
    takeId: integer('take_id').notNull(),
    callIds: text('call_ids').array().notNull(),
  },
  (table) => [primaryKey({ columns: [table.ownerId, table.source] })],
);

/** Legs that may be on the wire of a trunk with limits. */
export const trunkSlots = pgTable(
  'trunk_slots',
  {
    /** Of a call's first leg: the call's id. */
    legId: text('leg_id').primaryKey(),
    callId: text('call_id').notNull(),
    trunk: text('trunk').notNull(),
    ownerId: text('owner_id').notNull(),
    takenAt: instant('taken_at').notNull(),
    /** When its INVITE may leave. */
    startAt: timestamp('start_at', { withTimezone: true, mode: 'date' }),
  },
  (table) => [index('trunk_slots_by_trunk').on(table.trunk)],
);
