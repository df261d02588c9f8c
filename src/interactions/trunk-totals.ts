// Sums up the settled calls of each trunk, for all accounts: the last 24 hours by hour, and the
// same hours a week before. Calls that are not settled yet are missing, of which there are few.

import { slotMs } from '../store/calls/call-slots.ts';
import type { Queries } from '../store/queries.ts';

export type TrunkCounts = {
  /** Without the calls that never reached the carrier: `not-permitted` and `expired`. */
  readonly accepted: number;
  readonly answered: number;
  /** Calls that were over within 6 s of the answer. */
  readonly short: number;
  /** Calls with the outcome `blocked`. */
  readonly blocked: number;
};

export type TrunkTotals = {
  /** The beginning of the first hour. */
  readonly from: string;
  readonly trunks: readonly {
    /** Empty for the calls that need no trunk. */
    readonly trunk: string;
    readonly total: TrunkCounts;
    /** A week before, up to the same time. */
    readonly before: TrunkCounts;
    /** The last one is the current hour. */
    readonly hours: readonly TrunkCounts[];
  }[];
};

const hours = 24;
const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

const statement = {
  name: 'trunk totals',
  text: `
select trunk, case when slot >= $1 then floor(extract(epoch from slot - $1::timestamptz) / 3600)::integer end as hour,
  sum(calls)::double precision as accepted, sum(answered)::double precision as answered,
  sum(short)::double precision as short,
  coalesce(sum(calls) filter (where outcome = 'blocked'), 0)::double precision as blocked
from call_totals
where (slot >= $1 and slot < $2 or slot >= $3 and slot < $4) and outcome not in ('not-permitted', 'expired')
group by 1, 2`,
} as const;

type Row = TrunkCounts & { readonly trunk: string; readonly hour: number | null };

export async function trunkTotals(queries: Queries, now: Date): Promise<TrunkTotals> {
  const fromMs = Math.floor(now.getTime() / hourMs) * hourMs - (hours - 1) * hourMs;
  const toMs = (Math.floor(now.getTime() / slotMs) + 1) * slotMs;
  const times = [fromMs, toMs, fromMs - weekMs, toMs - weekMs].map((ms) => new Date(ms));
  const { rows } = await queries.query<Row>({ ...statement, values: times });
  const byTrunk = new Map<string, Row[]>();
  for (const row of rows) byTrunk.set(row.trunk, [...(byTrunk.get(row.trunk) ?? []), row]);
  return {
    from: new Date(fromMs).toISOString(),
    trunks: [...byTrunk]
      .map(([trunk, own]) => totalsOf(trunk, own))
      .sort((one, other) => other.total.accepted - one.total.accepted),
  };
}

function totalsOf(trunk: string, rows: readonly Row[]): TrunkTotals['trunks'][number] {
  const recent = rows.filter(({ hour }) => hour !== null);
  return {
    trunk,
    total: sumOf(recent),
    before: sumOf(rows.filter(({ hour }) => hour === null)),
    hours: Array.from({ length: hours }, (_, index) =>
      sumOf(recent.filter(({ hour }) => hour === index)),
    ),
  };
}

function sumOf(rows: readonly Row[]): TrunkCounts {
  const sum = (name: keyof TrunkCounts) => rows.reduce((total, row) => total + row[name], 0);
  return {
    accepted: sum('accepted'),
    answered: sum('answered'),
    short: sum('short'),
    blocked: sum('blocked'),
  };
}
