// How many accepted calls of the same trunk are dialled before a call that waits: the order in which trunks take them, by
// acceptance and then by id.

import { sql } from '../store/sql.ts';

/**
 * A column of a query on `calls`: 1 is next; null once the call is taken or ended. Those that are too old to be dialled hold
 * nobody up. `end_published_at is null` is what the index of open calls is known by.
 */
export const queuePosition = sql`
  case when calls.end_published_at is null and calls.ended_at is null and calls.dial_started_at is null then (
    select count(*)::integer + 1 from calls other
    where other.end_published_at is null and other.ended_at is null and other.dial_started_at is null
      and other.trunk is not distinct from calls.trunk and other.dial_before > clock_timestamp()
      and (other.accepted_at, other.call_id) < (calls.accepted_at, calls.call_id)
  ) end as queue_position`;
