// How many accepted calls of the same trunk are dialled before a call that waits: the order in which trunks take them, by
// acceptance and then by id.

import type { Queries } from '../store/queries.ts';
import { sql } from '../store/sql.ts';

/**
 * A column of a query on `calls`: 1 is next; null once the call is taken or ended. Those that are too old to be dialled hold
 * no other call up. `end_published_at is null` is what the index of open calls is known by.
 */
export const queuePosition = sql`
  case when calls.end_published_at is null and calls.ended_at is null and calls.dial_started_at is null then (
    select count(*)::integer + 1 from calls other
    where other.end_published_at is null and other.ended_at is null and other.dial_started_at is null
      and other.trunk is not distinct from calls.trunk and other.dial_before > clock_timestamp()
      and (other.accepted_at, other.call_id) < (calls.accepted_at, calls.call_id)
  ) end as queue_position`;

/** Of the calls of a page, all at once: counted for each by itself they would cost as much as there are calls before them. */
export async function queuePositions(
  queries: Queries,
  callIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (callIds.length === 0) return new Map();
  const { rows } = await queries.query<{ call_id: string; position: number }>(sql`
    select call_id, position from (
      select call_id, (row_number() over (partition by trunk order by accepted_at, call_id))::integer as position
      from calls
      where end_published_at is null and ended_at is null and dial_started_at is null
        and dial_before > clock_timestamp()
    ) as waiting where call_id = any(${callIds}::text[])`);
  return new Map(rows.map((row) => [row.call_id, row.position]));
}
