// Gives back the starts of calls that a calling rule kept from being dialled. Without this, a list
// that is loaded outside its hours would use up a trunk's pace for hours: on a trunk with one call
// per second, a thousand such calls would delay everybody else's by a thousand seconds.

import type { Pool } from 'pg';
import type { CallId } from '../../calls/contract/identity.ts';
import type { Grant } from '../../calls/dialout-ports.ts';

/** A call that was taken, in the order of the starts. */
export type TakenCall = { readonly grant: Grant; readonly isDialled: boolean };

/** What the trunk's clock showed after the take. */
export type TakenStarts = {
  readonly trunk: string;
  readonly intervalMs: number;
  readonly nextStart: string;
};

export type MovedStarts = {
  /** By how much each of the calls to dial starts earlier. */
  readonly earlierMs: ReadonlyMap<CallId, number>;
  /** How much earlier the trunk has its next free start. */
  readonly regainedMs: number;
};

/**
 * The clock of the trunk ($1) goes back only if it still shows $2. Otherwise somebody has taken a
 * start since, and two calls might leave at the same time. The slots ($4) keep the starts for the
 * case that the answer is lost and the take is repeated.
 */
const giveBackStatement = `
with moved as (
  update trunk_slots s set start_at = s.start_at - m.ms * interval '1 millisecond'
  from unnest($4::text[], $5::double precision[]) as m(leg_id, ms) where s.leg_id = m.leg_id
)
update trunk_pacing set next_start_at = next_start_at - $3::double precision * interval '1 millisecond'
where trunk = $1 and next_start_at = $2::timestamptz`;

/** Moves the calls to dial to the first starts of the take, and gives back the other starts. */
export async function giveBackStarts(
  pool: Pool,
  { trunk, intervalMs, nextStart }: TakenStarts,
  calls: readonly TakenCall[],
): Promise<MovedStarts> {
  const earlierMs = new Map<CallId, number>();
  let unused = 0;
  for (const { grant, isDialled } of calls) {
    if (!isDialled) unused += 1;
    else if (unused > 0) earlierMs.set(grant.call.callId, unused * intervalMs);
  }
  if (unused === 0) return { earlierMs, regainedMs: 0 };
  const { rowCount } = await pool.query({
    name: 'give back starts',
    text: giveBackStatement,
    values: [trunk, nextStart, unused * intervalMs, [...earlierMs.keys()], [...earlierMs.values()]],
  });
  return { earlierMs, regainedMs: rowCount === 1 ? unused * intervalMs : 0 };
}
