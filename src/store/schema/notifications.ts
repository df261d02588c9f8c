// Notifications, the attempts to deliver them, and the receivers that fail.

export const notifications = `
create table notifications (
  day date not null,
  event_id text not null,
  call_id text not null,
  app_id text not null,
  account_id text not null,
  bot_id text not null,
  sequence integer not null,
  -- The raw body: signed afresh for each attempt, but never built again.
  body text not null,
  -- pending, delivered, failed (a dead letter).
  state text not null,
  attempts integer not null,
  created_at timestamptz(3) not null,
  delivered_at timestamptz(3),
  -- When a refusal (4xx) first held up the notifications after it.
  refused_at timestamptz(3),
  -- When it became a dead letter. Null again once it is replayed.
  failed_at timestamptz(3),
  -- expired (24 h are over), gone (410), forbidden (may not be sent there).
  failure text,
  -- When it was last replayed: the 24 hours, and the schedule, begin there. Null: when it was created.
  owed_since timestamptz(3),
  -- Attempts before owed_since.
  attempts_before integer not null default 0,
  primary key (event_id, day)
) partition by list (day);
create index notifications_by_call on notifications (call_id, sequence);
-- Dead letters, by a column that a delivery does not touch: an update of a column that the index rests
-- on writes every index anew.
create index notifications_dead on notifications (account_id, bot_id, failed_at desc, event_id desc)
  where failed_at is not null;

-- One row for each call that owes notifications. A dispatcher leases the row, so that a call's
-- notifications leave in order and from one place.
create table notification_lanes (
  call_id text primary key,
  -- The partition of its notifications.
  day date not null,
  account_id text not null,
  -- Scheme, host and port of the notification URL.
  origin text not null,
  next_attempt_at timestamptz(3) not null,
  leased_by text,
  leased_until timestamptz(3)
);
-- The rows are found by account, then by receiver: one account with many keeps no other one waiting.
create index notification_lanes_due on notification_lanes (account_id, origin, next_attempt_at);

create table delivery_attempts (
  day date not null,
  attempt_id bigint generated always as identity,
  event_id text not null,
  call_id text not null,
  attempt integer not null,
  started_at timestamptz(3) not null,
  duration_ms integer not null,
  -- Null if no response came.
  response_status integer,
  error text,
  delivered boolean not null,
  -- Retention asks for the newest attempt of a day.
  primary key (attempt_id, day)
) partition by list (day);
create index delivery_attempts_by_call on delivery_attempts (call_id);

-- Who had dead letters sent again.
create table notification_replays (
  replay_id bigint generated always as identity primary key,
  event_id text not null,
  call_id text not null,
  replayed_at timestamptz(3) not null,
  -- An app's id.
  replayed_by text not null
);
create index notification_replays_by_call on notification_replays (call_id);
create index notification_replays_by_time on notification_replays (replayed_at);

-- Receivers that fail, for each app that uses them. A receiver that works has no row.
create table notification_endpoints (
  app_id text not null,
  origin text not null,
  account_id text not null,
  -- Null: the receiver has recovered, and the app has yet to hear of it.
  failing_since timestamptz(3),
  -- Failures in a row, on all nodes.
  failures integer not null,
  last_failed_at timestamptz(3),
  last_error text,
  recovered_at timestamptz(3),
  -- The beginning of the streak that an alert was sent for.
  told_since timestamptz(3),
  -- A node is sending an alert, and has the row until then.
  claimed_until timestamptz(3),
  primary key (app_id, origin)
);
`;
