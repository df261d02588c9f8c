// Sums up the calls of a period. Settled calls are in `call_totals`, which the gateway updates as
// calls end. We only count the calls that haven't been settled, of which there are few. A call
// becomes settled and counted in one statement, so a summary has each call exactly once.

import { type CallOutcome, callOutcomes } from '../calls/contract/call-words.ts';
import { beginningOfDay, daysIn } from '../lib/local-days.ts';
import { acceptedSlot } from '../store/calls/call-slots.ts';
import type { Queries } from '../store/queries.ts';
import { isShort } from '../store/schema/calls.ts';
import { all, type Sql, sql } from '../store/sql.ts';
import { inScope, isUnsettled, otherConditions } from './call-conditions.ts';
import type {
  AppScope,
  CallCounts,
  CallScope,
  CallsSummary,
  SummaryFilter,
  SummaryRequest,
} from './call-queries.ts';

type Row = {
  readonly kind: 'total' | 'bot' | 'trunk' | 'day' | 'quarter';
  /**
   * The bot, the trunk (empty if there is no trunk), the number of the day, from 1, or the seconds
   * from 1970 to the quarter of an hour.
   */
  readonly name: string | null;
  readonly outcome: CallOutcome | '';
  readonly verdict: string;
  readonly calls: number;
  readonly answered: number;
  readonly short: number;
  readonly talk_ms: number;
};

export async function summarizeCalls(
  queries: Queries,
  scope: CallScope | AppScope,
  { from, to, timeZone, filter, withQuarters }: SummaryRequest,
): Promise<CallsSummary> {
  const days = daysIn(from, to, timeZone);
  const beginnings = days.map((day) => beginningOfDay(day, timeZone).toISOString());
  const { rows } = await queries.query<Row>(sql`
    with counted as (
      select bot_id, trunk, slot, outcome, verdict, calls, answered, short, talk_ms from call_totals
      where ${all([inScope(scope), ...totalsConditions(filter)])} and slot >= ${from} and slot < ${to}
      union all
      select bot_id, coalesce(trunk, ''), ${acceptedSlot}, coalesce(outcome, ''), coalesce(verdict, ''),
        1, case when answered_at is null then 0 else 1 end,
        case when ${isShort} then 1 else 0 end,
        coalesce(round(extract(epoch from greatest(ended_at - answered_at, interval '0')) * 1000), 0)::bigint
      from calls
      where ${all([isUnsettled, inScope(scope), ...otherConditions(filter)])}
        and accepted_at >= ${from} and accepted_at < ${to}
    ), cube as materialized (
      select bot_id, trunk, width_bucket(slot, ${beginnings}::timestamptz[]) as day,
        ${withQuarters ? sql`slot` : sql`null::timestamptz`} as quarter, outcome, verdict,
        sum(calls) as calls, sum(answered) as answered, sum(short) as short, sum(talk_ms) as talk_ms
      from counted group by 1, 2, 3, 4, 5, 6
    )
    select case grouping(bot_id, trunk, day, quarter)
        when 7 then 'bot' when 11 then 'trunk' when 13 then 'day' when 14 then 'quarter' else 'total' end as kind,
      coalesce(bot_id, trunk, day::text, extract(epoch from quarter)::bigint::text) as name, outcome, verdict,
      sum(calls)::double precision as calls, sum(answered)::double precision as answered,
      sum(short)::double precision as short, sum(talk_ms)::double precision as talk_ms
    from cube
    group by grouping sets ((outcome, verdict), (bot_id, outcome, verdict), (trunk, outcome, verdict), (day, outcome, verdict),
      (quarter, outcome, verdict))`);
  const named = (kind: Row['kind']) => countsByName(rows.filter((row) => row.kind === kind));
  const byDay = named('day');
  return {
    ...{ from: from.toISOString(), to: to.toISOString(), timeZone },
    total: countsOf(rows.filter(({ kind }) => kind === 'total')),
    bots: mostFirst(named('bot')).map(([botId, counts]) => ({ botId, ...counts })),
    trunks: mostFirst(named('trunk')).map(([trunk, counts]) => ({
      ...(trunk === '' ? {} : { trunk }),
      ...counts,
    })),
    days: days.map((day, index) => ({ day, ...(byDay.get(String(index + 1)) ?? countsOf([])) })),
    ...(withQuarters ? { quarters: inOrder(named('quarter')) } : {}),
  };
}

/** The filter as conditions on the totals, which have the same columns as the list's filters. */
function totalsConditions({ outcome, status, verdict }: SummaryFilter): readonly Sql[] {
  return [
    ...(outcome === undefined ? [] : [sql`outcome = ${outcome}`]),
    ...(status === undefined ? [] : [sql`status = ${status}`]),
    ...(verdict === undefined ? [] : [sql`verdict = ${verdict}`]),
  ];
}

function countsByName(rows: readonly Row[]): ReadonlyMap<string, CallCounts> {
  const byName = new Map<string, Row[]>();
  for (const row of rows) {
    const name = row.name ?? '';
    byName.set(name, [...(byName.get(name) ?? []), row]);
  }
  return new Map([...byName].map(([name, own]) => [name, countsOf(own)]));
}

function mostFirst(counts: ReadonlyMap<string, CallCounts>): readonly [string, CallCounts][] {
  return [...counts].sort(
    ([name, one], [otherName, other]) =>
      other.accepted - one.accepted || (name < otherName ? -1 : 1),
  );
}

function inOrder(counts: ReadonlyMap<string, CallCounts>): NonNullable<CallsSummary['quarters']> {
  return [...counts]
    .map(([seconds, one]) => ({ from: new Date(Number(seconds) * 1_000).toISOString(), ...one }))
    .sort((one, other) => (one.from < other.from ? -1 : 1));
}

const machineVerdicts: readonly string[] = ['amd_machine_detected', 'amd_tone_detected'];
const minuteMs = 60_000;

function countsOf(rows: readonly Row[]): CallCounts {
  const sum = (value: (row: Row) => number): number =>
    rows.reduce((total, row) => total + value(row), 0);
  const callsIf = (holds: (row: Row) => boolean): number =>
    sum((row) => (holds(row) ? row.calls : 0));
  const outcomes = callOutcomes.flatMap((outcome) => {
    const calls = callsIf((row) => row.outcome === outcome);
    return calls === 0 ? [] : [[outcome, calls] as const];
  });
  return {
    accepted: sum(({ calls }) => calls),
    answered: sum(({ answered }) => answered),
    short: sum(({ short }) => short),
    people: callsIf(({ verdict }) => verdict === 'amd_human_detected'),
    machines: callsIf(({ verdict }) => machineVerdicts.includes(verdict)),
    minutes: Math.round((sum((row) => row.talk_ms) / minuteMs) * 100) / 100,
    outcomes: Object.fromEntries(outcomes),
  };
}
