// Stores steps (a call's new events and the state that they lead to) in one statement, and
// therefore in one commit. The statement inserts the events, updates the calls' rows, inserts the
// notifications that have to be sent for the events, and creates or updates the notification
// queues.
//
// The fence: a call only accepts events from the process that owns it, and none after its end. A
// process that takes over a lost process's calls sets their `owner_id` first, so steps that the
// lost process is still sending don't match any row. The statement stores such a step's leg
// nevertheless, because another process has to hang it up. The leg of an established dialog is
// never replaced.
//
// An answered call never ends as failed. If a process tries to store a failure although the answer
// has been stored, its step doesn't match any row. Recovery later finds that the call hasn't ended
// yet, and ends it based on its row.
//
// If we repeat a step because the database's response was lost, the result is the same. The
// statement recognises a stored end by its time, outcome and reason, and stored events and
// notifications by their keys.

import type { Day } from '../days.ts';
import { fewRows } from '../few-rows.ts';

/**
 * Selects the ending that applies, because some endings depend on whether the answer was stored.
 */
const ending =
  'case when i.ending_if_answered is not null and c.answered_at is not null then i.ending_if_answered else i.ending end';

const isAnswer = 'i.answered_at is not null';
const rings =
  "i.ringing_at is not null and c.answered_at is null and c.state in ('queued', 'dialing')";

/** True if this step's ending is the one that has been stored. */
const isSameEnd = `(c.ended_at, c.outcome, c.reason, c.reason_code, c.last_event_sequence)
      = (((${ending}) ->> 'at')::timestamptz, (${ending}) ->> 'outcome', (${ending}) ->> 'reason',
        (${ending}) ->> 'reasonCode', ((${ending}) ->> 'eventSequence')::integer)`;

/** The steps ($1), with one row per call, because a statement can only change a row once. */
const given = `given as materialized (
  select * from json_to_recordset($1::json) as row(call_id text, is_untaken boolean,
    dialed_at timestamptz, ringing_at timestamptz, answered_at timestamptz, ending jsonb, ending_if_answered jsonb,
    ftc_outcome text, ofcom_outcome text,
    event_sequence integer, notification_sequence integer, published integer)
  where ${fewRows('call_id')}
)`;

/**
 * Updates the calls' rows on behalf of this process ($2). The condition is the fence, so the
 * returned rows are the calls that accept their step. Except for `legs` and `released`, all other
 * parts only store data for these calls.
 */
const moved = `moved as (
  update calls c set
    owner_id = $2,
    dialed_at = coalesce(c.dialed_at, i.dialed_at),
    ringing_at = coalesce(c.ringing_at, i.ringing_at),
    answered_at = coalesce(c.answered_at, i.answered_at),
    state = case when c.ended_at is not null then c.state when i.ending is not null then 'ended'
      when ${isAnswer} then 'answered' when ${rings} then 'ringing' else c.state end,
    status = case when c.ended_at is not null then c.status
      when i.ending is not null then (${ending}) ->> 'status'
      when ${isAnswer} then 'answered' when ${rings} then 'ringing' else c.status end,
    ended_at = coalesce(c.ended_at, ((${ending}) ->> 'at')::timestamptz),
    outcome = coalesce(c.outcome, (${ending}) ->> 'outcome'),
    verdict = coalesce(c.verdict, (${ending}) ->> 'verdict'),
    reason = coalesce(c.reason, (${ending}) ->> 'reason'),
    reason_code = coalesce(c.reason_code, (${ending}) ->> 'reasonCode'),
    sip_status = coalesce(c.sip_status, ((${ending}) ->> 'sipStatus')::integer),
    evidence = coalesce(c.evidence, (${ending}) -> 'evidence'),
    ftc_outcome = coalesce(i.ftc_outcome, c.ftc_outcome),
    ofcom_outcome = coalesce(i.ofcom_outcome, c.ofcom_outcome),
    rule = coalesce(c.rule, (${ending}) ->> 'rule'),
    waits_for = case when i.ending is null then c.waits_for end,
    not_before = case when i.ending is null then c.not_before end,
    last_event_sequence = greatest(c.last_event_sequence, i.event_sequence,
      ((${ending}) ->> 'eventSequence')::integer),
    last_notification_sequence = greatest(c.last_notification_sequence, i.notification_sequence,
      ((${ending}) ->> 'notificationSequence')::integer),
    published_event_sequence = greatest(c.published_event_sequence, i.published)
  from given i
  where c.call_id = i.call_id
    and case when i.is_untaken then c.dial_started_at is null else c.owner_id = $2 end
    and (c.ended_at is null or c.end_published_at is null and c.owner_id = $2 and ${isSameEnd})
    and (c.answered_at is null or i.ending_if_answered is not null
      or i.ending ->> 'status' is distinct from 'failed')
  returning c.call_id, c.answered_at is not null as is_answered, c.dialed_at is not null as is_dialed,
    c.published_event_sequence as published
)`;

/**
 * The numbers ($9) of ruled calls whose INVITE left, that were answered, or that ended without an
 * INVITE. Locks their rows in the same order as other statements do, and after the calls, as
 * `lock_calls` does (`src/store/schema/lock-calls.ts`).
 */
const called = `called as materialized (
  select n.account_id, n.number, given.answered_at, given.unsent, given.dialed, given.dialed_at from (
    select account_id, number, max(answered_at) as answered_at,
      coalesce(array_agg(call_id) filter (where is_unsent), '{}') as unsent,
      array_agg(call_id) filter (where dialed_at is not null) as dialed,
      array_agg(dialed_at) filter (where dialed_at is not null) as dialed_at
    from (
      select call_id, account_id, number, answered_at, is_unsent, is_answered,
        coalesce(i.dialed_at, case when not is_dialed then i.sent_by end) as dialed_at
      from json_to_recordset($9::json) as i(call_id text, account_id text, number text,
        dialed_at timestamptz, sent_by timestamptz, answered_at timestamptz, is_unsent boolean)
      join moved using (call_id)
    ) as step
    where is_answered or is_unsent or dialed_at is not null
    group by account_id, number
  ) as given
  join called_numbers n using (account_id, number)
  order by account_id, number for update of n
)`;

/**
 * Notes the answers, dates attempts by their INVITEs, which may leave long after the check, and
 * gives back the attempts of calls without an INVITE.
 */
const counted = `counted as (
  update called_numbers n set answered_at = greatest(n.answered_at, c.answered_at),
    (call_ids, attempted_at) = (
      select coalesce(array_agg(call_id order by at, place), '{}'),
        coalesce(array_agg(at order by at, place), '{}')
      from (
        select a.call_id, greatest(a.at, sent.at) as at, a.place
        from unnest(n.call_ids, n.attempted_at) with ordinality as a(call_id, at, place)
        left join unnest(c.dialed, c.dialed_at) as sent(call_id, at) using (call_id)
        where a.call_id <> all(c.unsent)
      ) as kept
    )
  from called c where n.account_id = c.account_id and n.number = c.number
)`;

/**
 * The suppressions ($10) of people who opted out. They are stored even if this process no longer
 * owns the call, because the person has asked for them. An earlier suppression of the address is
 * replaced, since it may expire.
 */
const suppressed = `suppressed as (
  insert into suppressions (account_id, app_id, address, reason, source, created_at)
  select distinct on (account_id, address collate "C") account_id, app_id, address, 'opt-out',
    source, $5::timestamptz
  from json_to_recordset($10::json) as o(account_id text, app_id text, address text, source text)
  order by account_id, address collate "C"
  on conflict (account_id, address) do update set
    reason = excluded.reason, source = excluded.source, until = null, app_id = excluded.app_id
)`;

/** Stores the legs ($8) of all calls, even if this process no longer owns the call. */
const legs = `legs as (
  insert into call_legs as known (call_id, leg_id, leg)
  select call_id, leg_id, leg
  from json_to_recordset($8::json) as l(call_id text, leg_id text, leg jsonb)
  where leg is not null
  order by call_id, leg_id
  on conflict (call_id, leg_id) do update set leg = excluded.leg
  where known.leg ->> 'dialogId' is null or excluded.leg ->> 'dialogId' is not null
)`;

/** Deletes the legs that have ended on the wire, i.e. the entries of $8 without a leg. */
const released = `released as (
  delete from call_legs known
  using json_to_recordset($8::json) as l(call_id text, leg_id text, leg jsonb)
  where l.leg is null and known.call_id = l.call_id and known.leg_id = l.leg_id
)`;

/** Inserts the events ($3). `only_if` selects the events of the ending that applies. */
const stored = (day: Day) => `stored as (
  insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
  select date '${day}', e.call_id, e.event_sequence, e.event_id, e.type, e.time, e.data
  from json_to_recordset($3::json) as e(call_id text, event_sequence integer, event_id text,
    type text, time timestamptz, data json, only_if text)
  join moved using (call_id)
  where e.only_if is null or (e.only_if = 'answered') = moved.is_answered
  order by e.call_id, e.event_sequence
  on conflict do nothing
  returning call_id
)`;

/** The notifications ($4) to send for the stored events. `only_if` works as it does for events. */
const owed = `owed as materialized (
  select n.* from json_to_recordset($4::json) as n(event_id text, call_id text,
    account_id text, bot_id text, origin text, sequence integer, event_sequence integer,
    lease boolean, only_if text)
  join moved using (call_id)
  where n.only_if is null or (n.only_if = 'answered') = moved.is_answered
)`;

/**
 * Adds to each of these notifications whether its receiver has responded with 410 to an earlier
 * notification for the same call.
 */
const judged = (day: Day) => `judged as materialized (
  select owed.*, (
    select true from notifications g
    where g.day = '${day}' and g.call_id = owed.call_id and g.failure = 'gone' limit 1) as is_gone
  from owed
)`;

/**
 * Inserts the notifications at time $5. After a 410 response, they are inserted as dead letters.
 */
const inserted = (day: Day) => `inserted as (
  insert into notifications (day, event_id, call_id, account_id, bot_id, sequence, event_sequence,
    state, attempts, created_at, failed_at, failure)
  select date '${day}', event_id, call_id, account_id, bot_id, sequence, event_sequence,
    case when is_gone then 'failed' else 'pending' end, 0, $5::timestamptz,
    case when is_gone then $5::timestamptz end, case when is_gone then 'gone' end
  from judged order by call_id, sequence
  on conflict do nothing
  returning event_id, call_id, state
)`;

/**
 * The queue of each call with a new pending notification, and whether this process should lease
 * that queue.
 *
 * A statement only sees the rows that existed when it started. By the time `queued` inserts its
 * rows, another process may have deleted such a queue, possibly because the receiver responded with
 * 410. In that case `queued` creates a new queue without a lease. The dispatcher re-reads the queue
 * (`loadStatement`) before it sends anything, so it will find the 410 response.
 */
const queues = `queues as (
  select inserted.call_id,
    bool_and(judged.lease) and not exists (
      select from notification_lanes l where l.call_id = inserted.call_id) as lease,
    min(judged.account_id) as account_id, min(judged.origin) as origin
  from inserted join judged using (event_id) where inserted.state = 'pending'
  group by inserted.call_id
)`;

/**
 * Creates the queues with a lease until $6, or makes existing queues due. A queue that is retrying
 * a notification keeps the time of its next attempt, unless the receiver rejected that notification
 * (4xx) before $7. An existing lease is extended by a millisecond, so that the dispatcher that
 * holds it notices the addition.
 */
const queued = (day: Day) => `queued as (
  insert into notification_lanes as lane (call_id, day, account_id, origin, next_attempt_at,
    leased_by, leased_until)
  select call_id, date '${day}', account_id, origin, $5::timestamptz,
    case when lease then $2::text end, case when lease then $6::timestamptz end
  from queues order by call_id
  on conflict (call_id) do update set
    next_attempt_at = case when (
      select true from notifications n
      where n.day = '${day}' and n.call_id = lane.call_id and n.state = 'pending'
        and n.attempts > n.attempts_before
        and (n.refused_at is null or n.refused_at > $7::timestamptz) limit 1
    ) then lane.next_attempt_at else least(lane.next_attempt_at, excluded.next_attempt_at) end,
    leased_until = lane.leased_until + interval '1 millisecond'
  returning call_id, (xmax = 0) as is_new,
    case when leased_by = $2 then leased_until end as leased_until
)`;

/**
 * One row for each call that accepted its step, with the number of new events and the state of the
 * call's queue.
 */
const results = `
select moved.call_id, moved.is_answered, moved.published, coalesce(s.stored, 0)::integer as stored,
  queued.is_new, queued.leased_until,
  array(
    select i.event_id from inserted i where i.call_id = moved.call_id and i.state = 'pending'
  ) as event_ids
from moved
left join (select call_id, count(*) as stored from stored group by call_id) s using (call_id)
left join queued using (call_id)`;

/**
 * What else a batch changes. `numbers`: rows of `called_numbers`, which only the calls of accounts
 * with calling rules do. `opt-outs`: these and suppressions.
 */
export type AppendVariant = 'plain' | 'numbers' | 'opt-outs';

const additions: Readonly<Record<AppendVariant, readonly string[]>> = {
  plain: [],
  numbers: [called, counted],
  'opt-outs': [called, counted, suppressed],
};

/** Returns the statement for calls that were accepted on `day`. It is prepared once per day. */
export const appendStatement = (day: Day, variant: AppendVariant) => ({
  name: `append to calls of ${day}, ${variant}`,
  text: `with ${[
    ...[given, moved, ...additions[variant], legs, released, stored(day)],
    ...[owed, judged(day), inserted(day), queues, queued(day)],
  ].join(', ')} ${results}`,
});
