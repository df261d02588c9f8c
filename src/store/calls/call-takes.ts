// Claims queued calls for a process ("takes" them), keeping to the trunks' limits across all nodes.
// A `trunk_pacing` row is a trunk's clock. A `trunk_slots` row represents a leg that may be active
// on the trunk. A `call_takes` row records the last calls that a process took from a source. The
// SQL functions are in `../schema`.

import type { Pool } from 'pg';
import type { CallId } from '../../calls/contract/identity.ts';
import type {
  CallSource,
  CallTakes,
  ExpiredCall,
  Grant,
  Sweep,
  Taken,
  TakeRequest,
  TrunkLimits,
} from '../../calls/dialout-ports.ts';
import type { RuleName } from '../../calls/rules/rule-words.ts';
import type { Permits } from '../rules/permits.ts';
import { type CallColumns, callColumns, toAcceptedCall } from './call-rows.ts';
import { giveBackStarts, type MovedStarts, type TakenStarts } from './unused-starts.ts';

// `offset 0` makes the planner look up each call by its key. Otherwise it would read all calls,
// because it assumes that the function returns a thousand rows.
const withSequences = `left join lateral (
  select last_event_sequence, published_event_sequence from calls where call_id = t.call_id offset 0
) c on true`;

const takeStatement = `
select t.*, c.last_event_sequence, c.published_event_sequence
from take_calls($1, $2, $3, $4, $5, $6, $7, $8) t ${withSequences}`;

const isLimited = '($8::double precision > 0 or $9::integer is not null)';

/**
 * The end of a statement that stores calls and takes calls with parameters $2 to $9, the new ones
 * too. `accepted` must contain the ids of the new calls.
 *
 * A client that waits for its call to be stored must not wait for other takes. So the statement
 * takes nothing if the rows that a take locks are locked by others, or don't exist yet: the
 * process's own row, and the clock of a trunk with limits (`free`).
 *
 * PostgreSQL executes the function after `accepted` and `free`, because its arguments refer to
 * both, and the function sees the new calls, because it is volatile. The rest of the statement
 * doesn't see them, but their first event is stored together with them. Each row contains the ids
 * of the new calls. If nothing could be taken, there is one row without a result of the function.
 */
export const takeAlongClause = `, stored_calls as materialized (
  select coalesce(array_agg(call_id), '{}') as ids from accepted
), free as materialized (
  select (
    select count(*) from (
      select from call_takes where owner_id = $4 and source = $5 for update skip locked
    ) as own
  ) + (
    select count(*) from (
      select from trunk_pacing where trunk = $5 and ${isLimited} for update skip locked
    ) as clock
  ) as locks
)
select t.*, case when t.call_id = any(ids) then 1 else c.last_event_sequence end as last_event_sequence,
  c.published_event_sequence, ids as accepted
from stored_calls left join lateral (
  select t.* from free cross join lateral
    take_calls($2 + 0 * (cardinality(ids) + locks)::integer, $3, $4, $5, $6, $7, $8, $9) t
  where locks = case when ${isLimited} then 2 else 1 end
) t on true ${withSequences}`;

const advanceStatement = `
update trunk_pacing
set next_start_at = greatest(next_start_at, clock_timestamp()) + $2::double precision * interval '1 millisecond'
where trunk = $1
returning extract(epoch from next_start_at - clock_timestamp())::double precision * 1000 - $2 as start_in_ms,
  extract(epoch from clock_timestamp() - statement_timestamp())::double precision * 1000 as took_ms`;

/** After a node has been lost, recovery may need this long to hang up the node's calls. */
const lostSlotAge = '10 seconds';
/**
 * A call's state machine usually starts within milliseconds after the take, or when the take is
 * repeated. If it still has no state machine after this time, the sweep reports it as `not here`.
 */
const notHereAge = '10 seconds';
/**
 * A sweep returns at most this many calls of each kind, and the next sweep finds the rest. All
 * expired calls of a sweep share two statements.
 */
const maxExpiredPerSweep = 1_000;
const notHereAtOnce = 1_000;
/**
 * Calls that waited for a rule are released until this many wait to be dialled on their trunk, so
 * that a list that waited for the morning doesn't fill the queue for everybody else.
 */
const maxReleasedWaiting = 2_000;
/** A sweep looks at this many of a trunk's calls even if it can release none, to end late ones. */
const minDuePerSweep = 500;

// With `end_published_at is null and not_before is null`, the planner uses the index of open calls.
// `sources` skips through the index of calls that wait for a rule. `rooms` says how many of each
// source may be released, `due` finds those that are due, and `let_go` releases them.
const sweepStatement = `
with recursive released as (
  delete from trunk_slots s where taken_at < clock_timestamp() - interval '${lostSlotAge}'
    and exists (select from calls c where c.call_id = s.call_id
      and c.ended_at < clock_timestamp() - interval '${lostSlotAge}')
    and case when s.owner_id = $1 then s.call_id <> all($2::text[]) else not exists (
      select from nodes n where n.owner_id = s.owner_id and n.lost_at is null) end
), open as materialized (
  select call_id, trunk, owner_id, dial_started_at, dial_before, accepted_at from calls
  where end_published_at is null and not_before is null and ended_at is null
), sources as (
  (select coalesce(trunk, '') as source from calls where not_before is not null
   order by coalesce(trunk, '') limit 1)
  union all
  select next.source from sources s cross join lateral (
    select coalesce(trunk, '') as source from calls
    where not_before is not null and coalesce(trunk, '') > s.source order by coalesce(trunk, '') limit 1
  ) as next
), rooms as materialized (
  select source, greatest(0, ${maxReleasedWaiting} - (
    select count(*) from open
    where dial_started_at is null and coalesce(trunk, '') = source)) as room
  from sources
), due as materialized (
  select held.*, room from rooms cross join lateral (
    select call_id, dial_before, dial_before <= clock_timestamp() as is_late,
      row_number() over (partition by dial_before <= clock_timestamp() order by accepted_at) as place
    from (
      select call_id, dial_before, accepted_at from calls
      where not_before is not null and coalesce(trunk, '') = source
        and least(not_before, dial_before) <= clock_timestamp()
      order by least(not_before, dial_before) limit greatest(room, ${minDuePerSweep})
    ) as first
  ) as held
), let_go as (
  update calls c set not_before = null, waits_for = null from (
    select call_id from calls
    where call_id in (select call_id from due where not is_late and place <= room)
    order by call_id for update skip locked
  ) as permitted
  where c.call_id = permitted.call_id and c.ended_at is null and c.not_before is not null
  returning c.trunk
), expired as (
  (select call_id from open where dial_started_at is null and dial_before <= clock_timestamp()
   order by accepted_at limit ${maxExpiredPerSweep})
  union all
  (select call_id from due where is_late limit ${maxExpiredPerSweep})
)
select 'waiting' as kind, trunk, count(*)::integer as count, null as call_id, null as sid, null as conversation_id,
  null as account_id, null as app_id, null as bot_id, null::timestamptz as accepted_at, null::jsonb as request,
  null as waits_for, null::timestamptz as not_before
from (
  select trunk from open where dial_started_at is null and dial_before > clock_timestamp()
  union all select trunk from let_go
) as waiting group by trunk
union all
select 'expired', null, null, ${callColumns}, waits_for, not_before from calls
where call_id in (select call_id from expired)
union all
(select 'holding', null, null, null, null, null, null, null, null, null, null, null, null from sources
 limit 1)
union all
(select 'not here', null, null, call_id, null, null, null, null, null, null, null, null, null from open
 where owner_id = $1 and dial_started_at < clock_timestamp() - interval '${notHereAge}' and call_id <> all($2::text[])
 limit ${notHereAtOnce})`;

export type TakenRow =
  | (CallColumns & {
      readonly start_in_ms: number;
      readonly last_event_sequence: number | null;
      readonly published_event_sequence: number | null;
      readonly is_ruled: boolean;
    })
  | LastRow;

type LastRow = {
  readonly call_id: null;
  readonly took_ms: number;
  readonly retry_in_ms: number | null;
  /** What the trunk's clock shows now. Null if the trunk has no limits, or nothing was taken. */
  readonly next_start: string | null;
};

type Verdicts = Awaited<ReturnType<Permits['decide']>>;

/** What was taken, before the check by the calling rules. `starts` is undefined without a pace. */
type Claimed = { readonly taken: Taken; readonly starts?: TakenStarts };

type SweepRow =
  | { readonly kind: 'waiting'; readonly trunk: string | null; readonly count: number }
  | ({
      readonly kind: 'expired';
      readonly waits_for: RuleName | null;
      readonly not_before: Date | null;
    } & CallColumns)
  | { readonly kind: 'holding' }
  | { readonly kind: 'not here'; readonly call_id: CallId };

export type Taker = {
  readonly pool: Pool;
  readonly ownerId: string;
  readonly permits: Permits;
};

export function createCallTakes(pool: Pool, ownerId: string, permits: Permits): CallTakes {
  const taker = { pool, ownerId, permits };
  return {
    async take(request) {
      const { rows } = await pool.query<TakenRow>({
        name: 'take calls',
        text: takeStatement,
        values: takeArguments(taker, request),
      });
      return await takenFrom(taker, request, rows);
    },
    async nextStart(trunk, intervalMs) {
      const { rows } = await pool.query<{ start_in_ms: number; took_ms: number }>({
        name: 'advance a trunk',
        text: advanceStatement,
        values: [trunk, intervalMs],
      });
      const [row] = rows;
      if (row === undefined) throw new Error('the trunk has no row in trunk_pacing');
      return { startInMs: row.start_in_ms, tookMs: row.took_ms };
    },
    async release(legIds) {
      await pool.query({
        name: 'release slots',
        text: 'delete from trunk_slots where leg_id = any($1::text[])',
        values: [legIds],
      });
    },
    async sweep(here) {
      const { rows } = await pool.query<SweepRow>({
        name: 'sweep calls',
        text: sweepStatement,
        values: [ownerId, here],
      });
      return toSweep(rows);
    },
  };
}

/** Returns the arguments of `take_calls`. */
export function takeArguments(
  { ownerId }: Pick<Taker, 'ownerId'>,
  { takeId, isRepeated, source, wanted, horizonMs, limits }: TakeRequest,
): unknown[] {
  return [
    ...[takeId, isRepeated, ownerId, source ?? '', wanted, horizonMs, intervalOf(limits)],
    limits?.maxConcurrentCalls,
  ];
}

function intervalOf(limits: TrunkLimits | undefined): number {
  const rate = limits?.callsPerSecond;
  return rate === undefined ? 0 : 1_000 / rate;
}

/** Reads the result of `take_calls`, and checks the calls by the calling rules. */
export async function takenFrom(
  { pool, permits }: Pick<Taker, 'pool' | 'permits'>,
  request: TakeRequest,
  rows: readonly TakenRow[],
): Promise<Taken> {
  return await withPermits(pool, permits, claimedFrom(request, rows));
}

function claimedFrom({ source, limits }: TakeRequest, rows: readonly TakenRow[]): Claimed {
  const intervalMs = intervalOf(limits);
  const grants: Grant[] = [];
  for (const row of rows) {
    if (row.call_id === null) return toClaimed(grants, row, { trunk: source, intervalMs });
    grants.push({
      call: { ...toAcceptedCall(row), ...(row.is_ruled ? { isRuled: true } : {}) },
      startInMs: row.start_in_ms,
      queued: queuedState(row.last_event_sequence, row.published_event_sequence),
    });
  }
  throw new Error('a take ended without its last row');
}

function toClaimed(
  grants: readonly Grant[],
  { took_ms: tookMs, retry_in_ms: retryInMs, next_start: nextStart }: LastRow,
  { trunk, intervalMs }: { readonly trunk: CallSource; readonly intervalMs: number },
): Claimed {
  const taken = { grants, tookMs, ...(retryInMs === null ? {} : { retryInMs }) };
  if (trunk === undefined || nextStart === null || intervalMs === 0) return { taken };
  return { taken, starts: { trunk, intervalMs, nextStart } };
}

/** Removes the calls that have to wait for a calling rule, and marks those that a rule refuses. */
async function withPermits(
  pool: Pool,
  permits: Permits,
  { taken, starts }: Claimed,
): Promise<Taken> {
  const ruled = taken.grants.flatMap(({ call }) => (call.isRuled === true ? [call] : []));
  if (ruled.length === 0) return taken;
  const askedAtMs = performance.now();
  const verdicts = await permits.decide(ruled);
  const calls = taken.grants.map((grant) => ({ grant, isDialled: isDialled(grant, verdicts) }));
  const moved = starts === undefined ? nothingMoved : await giveBackStarts(pool, starts, calls);
  // Starts are relative to the end of the answer, and the check is part of the work for it.
  const checkMs = performance.now() - askedAtMs;
  const grants = taken.grants.flatMap((grant): readonly Grant[] => {
    const { call, startInMs } = grant;
    const earlierMs = moved.earlierMs.get(call.callId) ?? 0;
    const later = { ...grant, startInMs: startInMs - earlierMs - checkMs };
    if (call.isRuled !== true) return [later];
    const verdict = verdicts.get(call.callId);
    if (verdict === undefined) return [];
    if ('rule' in verdict) return [{ ...later, refusal: verdict }];
    return [{ ...later, call: { ...call, ...verdict } }];
  });
  const { retryInMs } = taken;
  return {
    ...{ grants, tookMs: taken.tookMs + checkMs },
    ...(retryInMs === undefined ? {} : { retryInMs: Math.max(0, retryInMs - moved.regainedMs) }),
  };
}

const nothingMoved: MovedStarts = { earlierMs: new Map(), regainedMs: 0 };

function isDialled({ call }: Grant, verdicts: Verdicts): boolean {
  if (call.isRuled !== true) return true;
  const verdict = verdicts.get(call.callId);
  return verdict !== undefined && !('rule' in verdict);
}

/**
 * Reports whether a call's first event has been stored, or even published. The take statement can't
 * see the event of a call that was accepted during the take, but storing that event again does no
 * harm.
 */
function queuedState(stored: number | null, published: number | null): Grant['queued'] {
  if (stored === null) return 'unknown';
  return published === null ? 'stored' : 'published';
}

function toSweep(rows: readonly SweepRow[]): Sweep {
  const waiting = new Map<CallSource, number>();
  const expired: ExpiredCall[] = [];
  let isHolding = false;
  const notHere: CallId[] = [];
  for (const row of rows) {
    switch (row.kind) {
      case 'waiting':
        waiting.set(row.trunk ?? undefined, row.count);
        break;
      case 'expired':
        expired.push(toExpiredCall(row));
        break;
      case 'holding':
        isHolding = true;
        break;
      case 'not here':
        notHere.push(row.call_id);
        break;
    }
  }
  return { expired, waiting, isHolding, notHere };
}

function toExpiredCall(row: Extract<SweepRow, { kind: 'expired' }>): ExpiredCall {
  const call = toAcceptedCall(row);
  const { waits_for: rule, not_before: notBefore } = row;
  if (rule === null || notBefore === null) return { call };
  return { call, refusal: { rule, notBefore } };
}
