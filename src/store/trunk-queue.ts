// Calls that wait for a trunk with limits, and what the trunk allows, held across all nodes: a row of `trunk_pacing` is
// the trunk's clock, and a row of `trunk_slots` a call that may be on its wire. Whoever takes calls holds the clock's row.

import type { Pool } from 'pg';
import type { Grant, GrantRequest, Taken, TrunkQueue } from '../calls/dialout-ports.ts';
import { acceptedCallOf, type CallColumns } from './call-rows.ts';

// `end_published_at is null` is what the index of open calls is known by.
const waitingCondition = `end_published_at is null and ended_at is null and dial_started_at is null`;

const takeStatement = 'select * from take_trunk_calls($1, $2, $3, $4, $5, $6)';

// Without a leg: none of them was ever started. Those that are older are being ended as calls that nobody has.
const untoldStatement = `
select c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id, c.accepted_at, c.request
from trunk_slots s join calls c on c.call_id = s.call_id
where s.owner_id = $1 and s.trunk = $2 and s.call_id <> all($3::text[])
  and c.owner_id = $1 and c.ended_at is null and c.leg is null
  and c.dial_started_at > clock_timestamp() - interval '45 seconds'
order by c.accepted_at, c.call_id`;

const advanceStatement = `
update trunk_pacing
set next_start_at = greatest(next_start_at, clock_timestamp()) + $2::double precision * interval '1 millisecond'
where trunk = $1
returning extract(epoch from next_start_at)::double precision * 1000 - $2 as start_at_ms,
  extract(epoch from clock_timestamp())::double precision * 1000 as clock_ms`;

/** The far end of a call that its node lost may take so long to be hung up. */
const lostSlotAge = '10 seconds';

export function createTrunkQueue(pool: Pool, ownerId: string): TrunkQueue {
  return {
    take: (request) => take(pool, ownerId, request),
    async untold(trunk, known) {
      const { rows } = await pool.query<CallColumns>(untoldStatement, [ownerId, trunk, known]);
      return rows.map(acceptedCallOf);
    },
    async nextStart(trunk, intervalMs) {
      const { rows } = await pool.query<{ start_at_ms: number; clock_ms: number }>(
        advanceStatement,
        [trunk, intervalMs],
      );
      const [row] = rows;
      if (row === undefined) throw new Error('the trunk has no clock');
      return { startAtMs: row.start_at_ms, clockMs: row.clock_ms };
    },
    async release(callIds) {
      await pool.query('delete from trunk_slots where call_id = any($1::text[])', [callIds]);
    },
    async releaseLost(held) {
      await pool.query(
        `delete from trunk_slots s where taken_at < clock_timestamp() - interval '${lostSlotAge}'
           and exists (select from calls c where c.call_id = s.call_id
             and c.ended_at < clock_timestamp() - interval '${lostSlotAge}')
           and case when s.owner_id = $1 then s.call_id <> all($2::text[]) else not exists (
             select from nodes n where n.owner_id = s.owner_id and n.lost_at is null) end`,
        [ownerId, held],
      );
    },
    async waitingByTrunk() {
      const { rows } = await pool.query<{ trunk: string | null; count: number }>(
        `select trunk, count(*)::integer as count from calls where ${waitingCondition} group by trunk`,
      );
      return new Map(rows.map((row) => [row.trunk ?? undefined, row.count]));
    },
  };
}

type TakenRow =
  | (CallColumns & { readonly start_at_ms: number })
  | { readonly call_id: null; readonly clock_ms: number; readonly retry_in_ms: number | null };

async function take(
  pool: Pool,
  ownerId: string,
  { trunk, limits, wanted, horizonMs }: GrantRequest,
): Promise<Taken> {
  const { callsPerSecond, maxConcurrentCalls } = limits;
  const intervalMs = callsPerSecond === undefined ? 0 : 1_000 / callsPerSecond;
  const { rows } = await pool.query<TakenRow>({
    name: 'take trunk calls',
    text: takeStatement,
    values: [trunk, ownerId, wanted, horizonMs, intervalMs, maxConcurrentCalls],
  });
  const grants: Grant[] = [];
  for (const row of rows) {
    if (row.call_id === null) {
      const taken = { grants, clockMs: row.clock_ms };
      return row.retry_in_ms === null ? taken : { ...taken, retryInMs: row.retry_in_ms };
    }
    grants.push({ call: acceptedCallOf(row), startAtMs: row.start_at_ms });
  }
  throw new Error('taking calls of a trunk ended without its clock');
}
