// The notifier's statements. Each statement is its own transaction, so it needs only one round trip
// and there is nothing to roll back. Preparing the statements by name halves their cost.
//
// PostgreSQL plans the statements while the tables are still small, so we have to make sure that it
// uses an index (`fewRows`, `= any(array(…))`, a subquery with a limit). With a plan that reads a
// whole table, one dead receiver's backlog would slow down all other receivers.
//
// A notification's body is built from its event. Retention may have deleted the call; its
// notifications are then no longer sent.
//
// Statements on notifications include the call's day, so they read only one partition (see
// `src/store/days.ts`).
//
// `leased_until` doubles as the queue's version. A statement that adds a notification to a leased
// queue moves this time by a millisecond. To release a queue, a process must pass the last value
// that it has read, so it can't release a queue that has changed since.

import type { Day } from '../store/days.ts';
import { fewRows } from '../store/few-rows.ts';

// Claims due calls from the front of each receiver's queue, so one receiver's backlog doesn't slow
// down another. The statement finds the receivers by skipping through the index, with one probe for
// each receiver. After that the accounts take turns, which keeps an account with many receivers
// from filling the batch.
//
// Rows are chosen first and locked afterwards. If another process claims a row in between, we skip
// the row but still count it in `chosen`, because more calls may be due.
export const claimStatement = {
  name: 'notifier-claim',
  text: `
with recursive receivers as (
  (select account_id, origin from notification_lanes order by account_id, origin limit 1)
  union all
  select next.account_id, next.origin
  from receivers r cross join lateral (
    select l.account_id, l.origin from notification_lanes l
    where (l.account_id, l.origin) > (r.account_id, r.origin) order by l.account_id, l.origin limit 1
  ) next
), rooms as (
  select r.account_id, r.origin, coalesce(a.room, $11::integer) as account_room,
    least(coalesce(g.room, a.by_new_receiver, $12::integer), coalesce(a.room, $11::integer), $4::integer) as room
  from receivers r
  left join unnest($5::text[], $6::text[], $7::integer[]) as g(account_id, origin, room) using (account_id, origin)
  left join unnest($8::text[], $9::integer[], $10::integer[]) as a(account_id, room, by_new_receiver) using (account_id)
), candidates as (
  select candidate.call_id, candidate.next_attempt_at, rooms.account_room,
    row_number() over (partition by rooms.account_id order by candidate.next_attempt_at) as turn
  from rooms cross join lateral (
    select c.call_id, c.next_attempt_at from notification_lanes c
    where c.account_id = rooms.account_id and c.origin = rooms.origin
      and c.next_attempt_at <= $3 and (c.leased_until is null or c.leased_until < $3)
    order by c.next_attempt_at limit rooms.room
  ) candidate
  where rooms.room > 0
), chosen as materialized (
  select call_id from candidates where turn <= account_room order by turn, next_attempt_at limit $4
), free as materialized (
  select call_id from notification_lanes
  where call_id = any(array(select call_id from chosen)) and next_attempt_at <= $3
    and (leased_until is null or leased_until < $3)
  for update skip locked
), claimed as (
  update notification_lanes lane set leased_by = $1, leased_until = $2
  where lane.call_id = any(array(select call_id from free))
  returning lane.call_id, lane.day
)
select (select count(*) from chosen)::integer as chosen,
  (select coalesce(json_agg(json_build_object('callId', call_id, 'day', day)), '[]') from claimed) as calls`,
} as const;

export const claimTheseStatement = {
  name: 'notifier-claim-these',
  text: `
update notification_lanes lane set leased_by = $1, leased_until = $2
from (
  select call_id from notification_lanes
  where call_id = any($4::text[]) and next_attempt_at <= $3 and (leased_until is null or leased_until < $3)
  for update skip locked
) due
where lane.call_id = due.call_id
returning lane.call_id as "callId", lane.day::text as day`,
} as const;

// After a 410 response we send only replayed notifications, for which `is_gone` is false. Other
// notifications may still be pending if the statement that stored them started before the 410
// response had been stored.
export const loadStatement = (day: Day) => ({
  name: `notifier-load of ${day}`,
  text: `
select lane.call_id, lane.leased_until, n.event_id, n.sequence, n.attempts, n.attempts_before,
  n.sid, n.conversation_id, n.account_id, n.bot_id, n.app_id, n.event_sequence, n.type, n.time, n.data,
  n.created_at, n.owed_since, n.refused_at, n.has_gone and n.owed_since is null as is_gone,
  case when n.refused_at is not null then (
    select max(a.started_at) from delivery_attempts a
    where a.day = '${day}' and a.call_id = n.call_id and a.event_id = n.event_id
  ) end as last_attempt_at
from notification_lanes lane
left join lateral (
  select known.*, bool_or(known.failure = 'gone') over () as has_gone, c.sid, c.conversation_id, c.app_id, e.type, e.time, e.data
  from notifications known
  join call_events e on e.day = '${day}' and e.call_id = known.call_id and e.event_sequence = known.event_sequence
  join calls c on c.call_id = known.call_id
  where known.day = '${day}' and known.call_id = lane.call_id
) n on n.state = 'pending'
where lane.call_id = any($1::text[]) and lane.leased_by = $2
order by lane.call_id, n.sequence, n.event_id`,
});

export const settleStatement = (day: Day) => ({
  name: `notifier-settle of ${day}`,
  text: `
with given as (
  select * from jsonb_to_recordset($1::jsonb) as row(event_id text, call_id text, attempt integer,
    started_at timestamptz, duration_ms integer, response_status integer, error text, state text, failure text,
    at timestamptz, refused boolean)
  where ${fewRows('event_id')}
), lanes as (
  select * from jsonb_to_recordset($2::jsonb) as row(call_id text, known timestamptz, next timestamptz,
    gone_at timestamptz)
  where ${fewRows('call_id')}
), logged as (
  insert into delivery_attempts (day, event_id, call_id, attempt, started_at, duration_ms, response_status, error, delivered)
  select date '${day}', event_id, call_id, attempt, started_at, duration_ms, response_status, error, state = 'delivered' from given
), updated as (
  update notifications n set state = given.state, attempts = given.attempt,
    delivered_at = case when given.state = 'delivered' then given.at end,
    refused_at = coalesce(n.refused_at, case when given.refused then given.at end),
    failed_at = case when given.state = 'failed' then given.at end, failure = given.failure
  from given where n.day = '${day}' and n.call_id = given.call_id and n.event_id = given.event_id and n.state = 'pending'
), stopped as (
  update notifications n set state = 'failed', failed_at = lanes.gone_at, failure = 'gone'
  from lanes where n.day = '${day}' and n.call_id = lanes.call_id and lanes.gone_at is not null and n.state = 'pending'
    and n.event_id not in (select event_id from given)
), released as (
  update notification_lanes lane set leased_by = null, leased_until = null, next_attempt_at = lanes.next
  from lanes where lane.call_id = lanes.call_id and lanes.next is not null
    and lane.leased_by = $3 and lane.leased_until = lanes.known
  returning lane.call_id
), finished as (
  delete from notification_lanes lane using lanes
  where lane.call_id = lanes.call_id and lanes.next is null
    and lane.leased_by = $3 and lane.leased_until = lanes.known
  returning lane.call_id
)
select call_id from released union all select call_id from finished`,
});

export const renewStatement = {
  name: 'notifier-renew',
  text: `
update notification_lanes lane set leased_until = $3
from jsonb_to_recordset($1::jsonb) as known(call_id text, until timestamptz)
where lane.call_id = known.call_id and lane.leased_by = $2 and lane.leased_until = known.until
returning lane.call_id`,
} as const;

export const releaseLostStatement = {
  name: 'notifier-release-lost',
  text: `
update notification_lanes set leased_by = null, leased_until = null
where leased_by in (select owner_id from nodes where lost_at is not null)`,
} as const;

export const owesStatement = {
  name: 'notifier-owes',
  text: 'select exists (select from notification_lanes) as owes',
} as const;

export const holdsStatement = {
  name: 'notifier-holds',
  text: `select exists (select from notification_lanes where leased_by = $1) as holds`,
} as const;

export const releaseOwnStatement = {
  name: 'notifier-release-own',
  text: `
update notification_lanes set leased_by = null, leased_until = null where leased_by = $1`,
} as const;
