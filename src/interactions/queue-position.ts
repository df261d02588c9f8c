// How many accepted calls of the same trunk are dialled before a call that waits: the order in which trunks take them, by
// acceptance and then by id.

import { sql } from 'drizzle-orm';

const isWaiting = (table: string) =>
  // `end_published_at is null` is what the index of open calls is known by.
  `${table}.end_published_at is null and ${table}.ended_at is null and ${table}.dial_started_at is null`;

/**
 * A column of a query on `calls`: 1 is next; null once the call is taken or ended. Those that are too old to be dialled hold
 * nobody up. The names are written out, since a column of the query would be taken for one of the rows that are counted.
 */
export const queuePosition = sql<number | null>`${sql.raw(`case when ${isWaiting('calls')} then (
  select count(*)::integer + 1 from calls other
  where ${isWaiting('other')} and other.trunk is not distinct from calls.trunk
    and other.dial_before > clock_timestamp()
    and (other.accepted_at, other.call_id) < (calls.accepted_at, calls.call_id)
) end`)}`;
