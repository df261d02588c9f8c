// Counts the calls of each caller ID in a period, and how many of them carriers blocked: the only
// first-hand sign of a number's reputation. As with `call-totals.ts`, settled calls are in a table
// that the gateway updates as calls end, and we only count the calls that haven't been settled.

import { acceptedSlot } from '../store/calls/call-slots.ts';
import type { Queries } from '../store/queries.ts';
import { callerId, isShort } from '../store/schema/calls.ts';
import { sql } from '../store/sql.ts';
import { inScope, isUnsettled } from './call-conditions.ts';
import type { AppScope, CallersSummary, CallScope, SummaryPeriod } from './call-queries.ts';

/** Bounds the response. An account may use a number of its own for each area code. */
export const maxCallers = 500;

type Row = {
  readonly caller: string;
  readonly calls: number;
  readonly answered: number;
  readonly short: number;
  readonly blocked: number;
};

export async function summarizeCallers(
  queries: Queries,
  scope: CallScope | AppScope,
  { from, to, timeZone }: SummaryPeriod,
): Promise<CallersSummary> {
  const { rows } = await queries.query<Row>(sql`
    with counted as (
      select caller, calls, answered, short, blocked from caller_totals
      where ${inScope(scope)} and slot >= ${from} and slot < ${to}
      union all
      select ${callerId}, 1, case when answered_at is null then 0 else 1 end,
        case when ${isShort} then 1 else 0 end, case when outcome = 'blocked' then 1 else 0 end
      from calls
      where ${isUnsettled} and ${inScope(scope)} and ${acceptedSlot} >= ${from} and ${acceptedSlot} < ${to}
    )
    select caller, sum(calls)::double precision as calls, sum(answered)::double precision as answered,
      sum(short)::double precision as short, sum(blocked)::double precision as blocked
    from counted group by caller
    order by blocked desc, calls desc, caller limit ${maxCallers + 1}`);
  const callers = rows.slice(0, maxCallers).map(({ calls, ...row }) => {
    return { ...row, accepted: calls, blockedShare: round(row.blocked / calls) };
  });
  return {
    ...{ from: from.toISOString(), to: to.toISOString(), timeZone, callers },
    ...(rows.length > maxCallers ? { more: true as const } : {}),
  };
}

function round(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}
