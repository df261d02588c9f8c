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
  bots jsonb not null,
  scopes jsonb not null,
  jwt_algorithm text not null,
  jwt_secret bytea,
  api_key_hash text,
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3)
);

create table webhook_secrets (
  secret_id text primary key,
  app_id text not null,
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
  notify_headers bytea,
  state text not null,
  status text not null,
  accepted_at timestamptz(3) not null,
  dial_started_at timestamptz(3),
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
create index calls_open on calls (accepted_at) where end_published_at is null;
create index calls_by_age on calls (accepted_at);

create table idempotency_keys (
  app_id text not null,
  bot_id text not null,
  key text not null,
  request_hash text not null,
  call_id text not null,
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
  body text not null,
  state text not null,
  attempts integer not null,
  created_at timestamptz(3) not null,
  delivered_at timestamptz(3),
  refused_at timestamptz(3)
);
create index notifications_by_call on notifications (call_id, sequence);

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
  response_status integer,
  error text,
  delivered boolean not null
);
create index delivery_attempts_by_call on delivery_attempts (call_id);
create index delivery_attempts_by_time on delivery_attempts (started_at);
`,
};
