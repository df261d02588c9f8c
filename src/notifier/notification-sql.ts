// The notifier's statements. Each is one statement and so one transaction: nothing to roll back, one round trip. They are
// prepared by name, which halves their cost.
//
// The value of `leased_until` doubles as the lane's version: who adds a notification to a leased lane moves it by a
// millisecond, so that the holder, who lets a lane go only with the value that it knows, cannot let one go unseen.

// In the order of the event id, so that two nodes that store the same facts do not lock each other up. A lane that waits
// for its receiver is left waiting; one that only waits for a refused event that others may pass, or for one that is
// missing, is due at once.
export const acceptStatement = {
  name: 'notifier-accept',
  text: `
with given as (
  select * from jsonb_to_recordset($1::jsonb) as row(event_id text, call_id text, app_id text, sequence integer,
    body text, created_at timestamptz, lease boolean)
), inserted as (
  insert into notifications (event_id, call_id, app_id, sequence, body, state, attempts, created_at)
  select event_id, call_id, app_id, sequence, body, 'pending', 0, created_at from given order by event_id
  on conflict (event_id) do nothing
  returning event_id, call_id
), lanes as (
  select inserted.call_id, bool_and(given.lease) as lease from inserted join given using (event_id)
  group by inserted.call_id
)
insert into notification_lanes as lane (call_id, next_attempt_at, leased_by, leased_until)
select call_id, $2::timestamptz, case when lease then $3::text end, case when lease then $4::timestamptz end
from lanes order by call_id
on conflict (call_id) do update set
  next_attempt_at = case when exists (
    select from notifications n where n.call_id = lane.call_id and n.state = 'pending' and n.attempts > 0
      and (n.refused_at is null or n.refused_at > $5::timestamptz)
  ) then lane.next_attempt_at else least(lane.next_attempt_at, excluded.next_attempt_at) end,
  leased_until = lane.leased_until + interval '1 millisecond'
returning call_id, (xmax = 0) as is_new,
  (select count(*)::integer from notifications n where n.call_id = lane.call_id) as known_before`,
} as const;

export const claimStatement = {
  name: 'notifier-claim',
  text: `
update notification_lanes lane set leased_by = $1, leased_until = $2
from (
  select call_id from notification_lanes candidate
  where next_attempt_at <= $3 and (leased_until is null or leased_until < $3)
    and (cardinality($5::text[]) = 0 or not exists (
      select from calls where calls.call_id = candidate.call_id
        and substring(lower(calls.notify_url) from '^[a-z]+://[^/?#]*') = any($5::text[])))
  order by next_attempt_at limit $4
  for update skip locked
) due
where lane.call_id = due.call_id
returning lane.call_id`,
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
returning lane.call_id`,
} as const;

export const loadStatement = {
  name: 'notifier-load',
  text: `
select lane.call_id, lane.leased_until, n.event_id, n.app_id, n.sequence, n.body, n.attempts, n.created_at, n.refused_at,
  n.sequence - 1 > (
    select count(*) from notifications p where p.call_id = n.call_id and p.sequence < n.sequence
  ) as has_gap,
  case when n.refused_at is not null then (
    select max(a.started_at) from delivery_attempts a where a.call_id = n.call_id and a.event_id = n.event_id
  ) end as last_attempt_at
from notification_lanes lane
left join notifications n on n.call_id = lane.call_id and n.state = 'pending'
where lane.call_id = any($1::text[]) and lane.leased_by = $2
order by lane.call_id, n.sequence`,
} as const;

export const settleStatement = {
  name: 'notifier-settle',
  text: `
with given as (
  select * from jsonb_to_recordset($1::jsonb) as row(event_id text, call_id text, attempt integer,
    started_at timestamptz, duration_ms integer, response_status integer, error text, state text, at timestamptz,
    refused boolean)
), lanes as (
  select * from jsonb_to_recordset($2::jsonb) as row(call_id text, known timestamptz, next timestamptz)
), logged as (
  insert into delivery_attempts (event_id, call_id, attempt, started_at, duration_ms, response_status, error, delivered)
  select event_id, call_id, attempt, started_at, duration_ms, response_status, error, state = 'delivered' from given
), updated as (
  update notifications n set state = given.state, attempts = given.attempt,
    delivered_at = case when given.state = 'delivered' then given.at end,
    refused_at = coalesce(n.refused_at, case when given.refused then given.at end)
  from given where n.event_id = given.event_id and n.state = 'pending'
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
} as const;

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

export const holdsStatement = {
  name: 'notifier-holds',
  text: `select exists (select from notification_lanes where leased_by = $1) as holds`,
} as const;

export const releaseOwnStatement = {
  name: 'notifier-release-own',
  text: `
update notification_lanes set leased_by = null, leased_until = null where leased_by = $1`,
} as const;
