// Notifications, delivery attempts, and failing receivers.

export const notifications = `
create table notifications (
  day date not null,
  event_id text not null,
  call_id text not null,
  account_id text not null,
  bot_id text not null,
  sequence integer not null,
  -- The event that the body is built from.
  event_sequence integer not null,
  -- pending, delivered, failed (a dead letter).
  state text not null,
  attempts integer not null,
  created_at timestamptz(3) not null,
  delivered_at timestamptz(3),
  -- When a refusal (4xx) of this notification first held up the later ones.
  refused_at timestamptz(3),
  -- When the notification became a dead letter. A replay sets it to null again.
  failed_at timestamptz(3),
  -- expired (24 h are over), gone (410), forbidden (the address is not allowed).
  failure text,
  -- The time of the last replay, from which the 24 hours and the schedule count. Null: they count
  -- from created_at.
  owed_since timestamptz(3),
  -- The number of attempts before owed_since.
  attempts_before integer not null default 0,
  primary key (call_id, sequence, day)
) partition by list (day);
-- Dead letters, by a column that a delivery does not change: an update of an indexed column writes
-- every index again.
create index notifications_dead on notifications (account_id, bot_id, failed_at desc, event_id desc)
  where failed_at is not null;

-- One row for each call that owes notifications. A dispatcher leases the row, so that a call's
-- notifications leave in order and from one process.
create table notification_lanes (
  call_id text primary key,
  -- The partition of the call's notifications.
  day date not null,
  account_id text not null,
  -- Scheme, host and port of the notification URL.
  origin text not null,
  next_attempt_at timestamptz(3) not null,
  leased_by text,
  leased_until timestamptz(3)
);
-- Rows are found by account, then by receiver, so that an account with many rows does not delay the
-- others.
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
  -- Retention looks for the newest attempt of a day.
  primary key (attempt_id, day)
) partition by list (day);
create index delivery_attempts_by_call on delivery_attempts (call_id);

-- Replays of dead letters, with the app that asked for them.
create table notification_replays (
  replay_id bigint generated always as identity primary key,
  event_id text not null,
  call_id text not null,
  replayed_at timestamptz(3) not null,
  -- The id of an app.
  replayed_by text not null
);
create index notification_replays_by_call on notification_replays (call_id);
create index notification_replays_by_time on notification_replays (replayed_at);

-- Failing receivers, for each app that uses them. A receiver that works has no row.
create table notification_endpoints (
  app_id text not null,
  origin text not null,
  account_id text not null,
  -- Null: the receiver has recovered, and the app has not been notified yet.
  failing_since timestamptz(3),
  -- Consecutive failures, counted over all nodes.
  failures integer not null,
  last_failed_at timestamptz(3),
  last_error text,
  recovered_at timestamptz(3),
  -- The start of the failure streak for which an alert was sent.
  told_since timestamptz(3),
  -- While a node sends an alert, it holds the row until this time.
  claimed_until timestamptz(3),
  primary key (app_id, origin)
);
`;
