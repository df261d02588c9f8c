// Counts the calls of each caller ID in a period, and how many of them carriers blocked: the only
// first-hand sign of a number's reputation. As with `call-totals.ts`, settled calls are in a table
// that the gateway updates as calls end, and we only count the calls that haven't been settled.

import { beginningOfDay, daysIn } from '../lib/local-days.ts';
import { acceptedSlot } from '../store/calls/call-slots.ts';
import type { Queries } from '../store/queries.ts';
import { callerId, isShort } from '../store/schema/calls.ts';
import { sql } from '../store/sql.ts';
import { inScope, isUnsettled } from './call-conditions.ts';
import type {
  AppScope,
  CallerCounts,
  CallersRequest,
  CallersSummary,
  CallScope,
} from './call-queries.ts';

/** Bounds the response. An account may use a number of its own for each area code. */
export const maxCallers = 500;

/** The calls of a caller ID on a day. */
type Row = {
  readonly caller: string;
  /** The number of the day, from 1. */
  readonly day: number;
  readonly calls: number;
  readonly answered: number;
  readonly short: number;
  readonly blocked: number;
};

export async function summarizeCallers(
  queries: Queries,
  scope: CallScope | AppScope,
  { from, to, timeZone, withDays }: CallersRequest,
): Promise<CallersSummary> {
  const days = daysIn(from, to, timeZone);
  // Without days, the whole period is one.
  const beginnings = (withDays ? days : days.slice(0, 1)).map((day) =>
    beginningOfDay(day, timeZone).toISOString(),
  );
  const { rows } = await queries.query<Row>(sql`
    with counted as (
      select caller, slot, calls, answered, short, blocked from caller_totals
      where ${inScope(scope)} and slot >= ${from} and slot < ${to}
      union all
      select ${callerId}, ${acceptedSlot}, 1, case when answered_at is null then 0 else 1 end,
        case when ${isShort} then 1 else 0 end, case when outcome = 'blocked' then 1 else 0 end
      from calls
      where ${isUnsettled} and ${inScope(scope)} and ${acceptedSlot} >= ${from} and ${acceptedSlot} < ${to}
    ), by_day as materialized (
      select caller, width_bucket(slot, ${beginnings}::timestamptz[]) as day,
        sum(calls)::double precision as calls, sum(answered)::double precision as answered,
        sum(short)::double precision as short, sum(blocked)::double precision as blocked
      from counted group by 1, 2
    ), listed as (
      select caller, sum(blocked) as blocked, sum(calls) as calls from by_day group by caller
      order by blocked desc, calls desc, caller limit ${maxCallers + 1}
    )
    select by_day.* from listed join by_day using (caller)
    order by listed.blocked desc, listed.calls desc, caller, day`);
  const byCaller = new Map<string, Row[]>();
  for (const row of rows) byCaller.set(row.caller, [...(byCaller.get(row.caller) ?? []), row]);
  const callers = [...byCaller].slice(0, maxCallers).map(([caller, own]) => {
    const counts = sumOf(own);
    return {
      ...{ caller, ...counts, blockedShare: round(counts.blocked / counts.accepted) },
      ...(withDays && {
        days: own.map((row) => ({ day: days[row.day - 1] ?? '', ...sumOf([row]) })),
      }),
    };
  });
  return {
    ...{ from: from.toISOString(), to: to.toISOString(), timeZone, callers },
    ...(byCaller.size > maxCallers ? { more: true as const } : {}),
  };
}

function sumOf(rows: readonly Row[]): CallerCounts {
  const sum = (name: 'calls' | 'answered' | 'short' | 'blocked') =>
    rows.reduce((total, row) => total + row[name], 0);
  return {
    accepted: sum('calls'),
    answered: sum('answered'),
    short: sum('short'),
    blocked: sum('blocked'),
  };
}

function round(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}
