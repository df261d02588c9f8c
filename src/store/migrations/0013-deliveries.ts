// Dead letters that can be listed and replayed, receivers that are known by their origin, and those that keep failing.

import type { Migration } from './migration.ts';

export const deliveries: Migration = {
  version: 13,
  name: 'deliveries',
  sql: `
alter table notifications
  -- Null where a version before dead letters wrote it.
  add column account_id text,
  add column bot_id text,
  -- Of a dead letter; null again once it is replayed.
  add column failed_at timestamptz(3),
  -- expired (24 h are over), gone (410), forbidden (may not be sent there).
  add column failure text,
  -- When it was replayed last: the 24 hours, and the schedule, begin there. Null: when it was created.
  add column owed_since timestamptz(3),
  -- Attempts before that.
  add column attempts_before integer not null default 0;
update notifications n set account_id = c.account_id, bot_id = c.bot_id,
  failed_at = case when n.state = 'failed' then coalesce(
    (select max(a.started_at) from delivery_attempts a where a.call_id = n.call_id and a.event_id = n.event_id),
    n.created_at) end,
  failure = case when n.state = 'failed' then 'expired' end
from calls c where c.call_id = n.call_id and n.state <> 'delivered';
-- Known by a column that a delivery does not touch: an update of one that the index rests on would write every index anew.
create index notifications_dead on notifications (account_id, bot_id, failed_at desc, event_id desc)
  where failed_at is not null;

-- Of the notification URL: scheme, host, port.
alter table notification_lanes add column origin text not null default '';
update notification_lanes l set origin = coalesce(substring(c.notify_url from '^[a-z]+://[^/?#]*'), '')
from calls c where c.call_id = l.call_id;
drop index notification_lanes_due;
create index notification_lanes_due on notification_lanes (origin, next_attempt_at);

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

-- Receivers that fail, for each app that uses them; those that do not have no row.
create table notification_endpoints (
  app_id text not null,
  origin text not null,
  account_id text not null,
  -- Null: it has recovered, which is yet to be told.
  failing_since timestamptz(3),
  -- In a row, on all nodes.
  failures integer not null,
  last_failed_at timestamptz(3),
  last_error text,
  recovered_at timestamptz(3),
  -- The beginning of the streak that an alert was sent for.
  told_since timestamptz(3),
  -- A node is sending an alert.
  claimed_until timestamptz(3),
  primary key (app_id, origin)
);
`,
};
