// The first tables: apps, calls and what their notifications need.

import type { Migration } from './migration.ts';

export const callsAndNotifications: Migration = {
  version: 1,
  name: 'calls-and-notifications',
  sql: `
create table apps (
  app_id text primary key,
  account_id text not null,
  name text not null,
  -- Bot ids, or * alone for every bot of the account.
  bots jsonb not null,
  scopes jsonb not null,
  jwt_algorithm text not null,
  -- What its tokens are verified with, encrypted: the shared secret, or a JWKS document.
  jwt_secret bytea,
  -- SHA-256: the key is random and long, so that a slow hash adds nothing.
  api_key_hash text,
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3)
);

create table webhook_secrets (
  secret_id text primary key,
  app_id text not null,
  -- Encrypted.
  secret bytea not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3)
);
create index webhook_secrets_app on webhook_secrets (app_id);

-- A call is inserted once and updated five or six times within minutes: free space in each page keeps the updates there
-- (heap-only tuples), so that they touch no index.
create table calls (
  call_id text primary key,
  sid text not null,
  conversation_id text not null,
  account_id text not null,
  app_id text not null,
  bot_id text not null,
  request jsonb not null,
  notify_url text,
  -- JSON object of the caller's headers, encrypted.
  notify_headers bytea,
  -- queued, dialing, ringing, answered, ended: for people and lists; decisions rest on the columns below.
  state text not null,
  -- Status column of the interactions view.
  status text not null,
  accepted_at timestamptz(3) not null,
  -- "An INVITE may have left": set before, and never dialled again.
  dial_started_at timestamptz(3),
  -- The process that dials it: NODE_ID and a random part of this start.
  owner_id text,
  leg jsonb,
  ringing_at timestamptz(3),
  answered_at timestamptz(3),
  answered_event jsonb,
  ended_at timestamptz(3),
  end_event jsonb,
  unpublished_events jsonb,
  end_published_at timestamptz(3),
  outcome text,
  sip_status integer,
  idempotency_key text
) with (fillfactor = 50);
create index calls_by_bot on calls (account_id, bot_id, accepted_at desc, call_id desc);
create index calls_by_idempotency_key on calls (account_id, idempotency_key);
-- All that somebody still has to do something about: a few thousand rows at most, whatever the table holds.
create index calls_open on calls (accepted_at) where end_published_at is null;
-- For retention. Not on ended_at: an index on a column that changes would make every end a costly update.
create index calls_by_age on calls (accepted_at);

create table idempotency_keys (
  app_id text not null,
  bot_id text not null,
  key text not null,
  -- SHA-256 of the canonical request.
  request_hash text not null,
  call_id text not null,
  -- The stored answer: {sid, callId, conversationId}.
  answer jsonb not null,
  expires_at timestamptz(3) not null,
  primary key (app_id, bot_id, key)
);
create index idempotency_keys_expiry on idempotency_keys (expires_at);

create table call_events (
  call_id text not null,
  event_sequence integer not null,
  event_id text not null,
  type text not null,
  time timestamptz(3) not null,
  data jsonb not null,
  primary key (call_id, event_id)
);

create table notifications (
  event_id text primary key,
  call_id text not null,
  app_id text not null,
  sequence integer not null,
  -- The raw body: signed afresh for each attempt, but never built again.
  body text not null,
  -- pending, delivered, failed (a dead letter).
  state text not null,
  attempts integer not null,
  created_at timestamptz(3) not null,
  delivered_at timestamptz(3),
  -- When a refusal (4xx) first held its successors up.
  refused_at timestamptz(3)
);
create index notifications_by_call on notifications (call_id, sequence);

-- One row for each call that owes notifications: what a dispatcher leases, so that a call leaves in order from one place.
create table notification_lanes (
  call_id text primary key,
  next_attempt_at timestamptz(3) not null,
  leased_by text,
  leased_until timestamptz(3)
);
create index notification_lanes_due on notification_lanes (next_attempt_at);

create table delivery_attempts (
  attempt_id bigint generated always as identity primary key,
  event_id text not null,
  call_id text not null,
  attempt integer not null,
  started_at timestamptz(3) not null,
  duration_ms integer not null,
  -- Null where no response came.
  response_status integer,
  error text,
  delivered boolean not null
);
create index delivery_attempts_by_call on delivery_attempts (call_id);
create index delivery_attempts_by_time on delivery_attempts (started_at);
`,
};
