// Measures how much work waits in the database: calls to be dialled, and notifications to be sent.
// The cost has a bound whatever the size of the tables, because every node asks a few times a
// minute, and most often while something is wrong.

import type { Queries } from './queries.ts';

export type Backlog = {
  /** The number of calls that wait to be dialled, at most `maxCounted`. */
  readonly waitingCalls: number;
  /** How long the oldest of them has waited. 0 if none waits. */
  readonly oldestWaitingCallMs: number;
  /** The number of calls that still have notifications to send, at most `maxCounted`. */
  readonly owingCalls: number;
  /** How late the notification is that should have been sent first. 0 if none is late. */
  readonly notificationsLateMs: number;
};

/** Twice what the intake lets wait (`maxQueued` in `src/app/calls.ts`). */
const maxCounted = 20_000;
/** How many receivers we look at. Each costs one probe of the index. */
const maxReceivers = 1_000;

/**
 * `order by` names the columns of an index, so that the limits end a scan of the index. A scan of
 * the table could read many empty pages first.
 *
 * `receivers` skips through the index of queues, as the dispatcher does, and finds each receiver's
 * queue that is due first.
 *
 * The statement has no name, so that PostgreSQL plans it for the tables' current size each time.
 */
const statement = `
with recursive waiting as materialized (
  select accepted_at from calls
  where dial_started_at is null and end_published_at is null and not_before is null
    and ended_at is null
  order by coalesce(trunk, ''), accepted_at, call_id limit ${maxCounted}
), receivers as (
  (select account_id, origin, next_attempt_at from notification_lanes
   order by account_id, origin, next_attempt_at limit 1)
  union all
  select next.account_id, next.origin, next.next_attempt_at
  from receivers r cross join lateral (
    select l.account_id, l.origin, l.next_attempt_at from notification_lanes l
    where (l.account_id, l.origin) > (r.account_id, r.origin)
    order by l.account_id, l.origin, l.next_attempt_at limit 1
  ) next
)
select (select count(*) from waiting)::integer as "waitingCalls",
  (select ${msSince('min(accepted_at)')} from waiting) as "oldestWaitingCallMs",
  (select count(*) from (
    select from notification_lanes order by account_id, origin, next_attempt_at limit ${maxCounted}
  ) lanes)::integer as "owingCalls",
  (select ${msSince('min(next_attempt_at)')} from (
    select next_attempt_at from receivers limit ${maxReceivers}) firsts) as "notificationsLateMs"`;

/** Returns SQL for the milliseconds since a time, which are 0 for null and for a future time. */
function msSince(time: string): string {
  return `coalesce(round(extract(epoch from greatest(now() - ${time}, interval '0')) * 1000), 0)::double precision`;
}

export async function readBacklog(queries: Queries): Promise<Backlog> {
  const { rows } = await queries.query<Backlog>(statement);
  const [backlog] = rows;
  if (backlog === undefined) throw new Error('the statement returned no row');
  return backlog;
}

/** Returns the size of all tables and indexes of this database on its server's disk. */
export async function readDatabaseBytes(queries: Queries): Promise<number> {
  const { rows } = await queries.query<{ bytes: number }>(
    'select pg_database_size(current_database())::double precision as bytes',
  );
  return rows[0]?.bytes ?? 0;
}
