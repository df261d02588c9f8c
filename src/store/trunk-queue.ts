// Calls that wait for a trunk with limits, and what the trunk allows, held across all nodes: a row of `trunk_pacing` is
// the trunk's clock, and a row of `trunk_slots` a call that may be on its wire. Whoever takes calls holds the clock's row.

import type { Pool, PoolClient } from 'pg';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { Grant, GrantRequest, TrunkQueue } from '../calls/dialout-ports.ts';
import { acceptedCallOf, type CallColumns } from './call-rows.ts';
import { inTransaction } from './transaction.ts';

// `end_published_at is null` is what the index of open calls is known by.
const waitingCondition = `end_published_at is null and ended_at is null and dial_started_at is null`;

const clockStatement = `
select extract(epoch from greatest(next_start_at, clock_timestamp()) - clock_timestamp()) * 1000 as in_ms,
  clock_timestamp() as now
from trunk_pacing where trunk = $1 for update`;

// Claimed like by the queue's message: "an INVITE may have left".
const takeStatement = `
with picked as (
  select call_id from calls
  where ${waitingCondition} and trunk = $1 and dial_before > clock_timestamp()
  order by accepted_at, call_id limit $2
  for update skip locked
), claimed as (
  update calls c set dial_started_at = clock_timestamp(), owner_id = $3, state = 'dialing', status = 'dialing'
  from picked where c.call_id = picked.call_id
  returning c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id, c.accepted_at, c.request
), slots as (
  insert into trunk_slots (call_id, trunk, owner_id, taken_at)
  select call_id, $1, $3, clock_timestamp() from claimed
)
select * from claimed order by accepted_at, call_id`;

const advanceStatement = `
update trunk_pacing
set next_start_at = greatest(next_start_at, clock_timestamp()) + $2::double precision * interval '1 millisecond'
where trunk = $1
returning extract(epoch from next_start_at - clock_timestamp()) * 1000 as next_in_ms`;

/** The far end of a call that its node lost may take so long to be hung up. */
const lostSlotAge = '10 seconds';

export function createTrunkQueue(pool: Pool, ownerId: string): TrunkQueue {
  return {
    take: (request) => inTransaction(pool, (client) => take(client, ownerId, request)),
    async nextStart(trunk, intervalMs) {
      const { rows } = await pool.query<{ next_in_ms: number }>(advanceStatement, [
        trunk,
        intervalMs,
      ]);
      return Math.max(0, Number(rows[0]?.next_in_ms ?? 0) - intervalMs);
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

async function take(
  client: PoolClient,
  ownerId: string,
  { trunk, limits, wanted, horizonMs }: GrantRequest,
): Promise<{ readonly grants: readonly Grant[]; readonly retryInMs?: number }> {
  await client.query(
    `insert into trunk_pacing (trunk, next_start_at) values ($1, clock_timestamp()) on conflict do nothing`,
    [trunk],
  );
  const clock = await client.query<{ in_ms: string }>(clockStatement, [trunk]);
  const firstInMs = Number(clock.rows[0]?.in_ms ?? 0);
  const { callsPerSecond, maxConcurrentCalls } = limits;
  const intervalMs = callsPerSecond === undefined ? 0 : 1_000 / callsPerSecond;
  const starts = intervalMs === 0 ? wanted : Math.floor((horizonMs - firstInMs) / intervalMs) + 1;
  if (starts < 1) return { grants: [], retryInMs: firstInMs - horizonMs };

  // A statement of its own, after the lock: it must see what others took before.
  const room =
    maxConcurrentCalls === undefined ? wanted : await roomOf(client, trunk, maxConcurrentCalls);
  const count = Math.min(wanted, starts, room);
  if (count < 1) return { grants: [] };
  const calls = await takeCalls(client, trunk, count, ownerId);
  if (calls.length > 0) await client.query(advanceStatement, [trunk, calls.length * intervalMs]);
  const grants = calls.map((call, index) => ({ call, inMs: firstInMs + index * intervalMs }));
  // All that was asked for: there may be more.
  return calls.length === count
    ? { grants, retryInMs: Math.max(0, firstInMs + count * intervalMs - horizonMs) }
    : { grants };
}

async function roomOf(client: PoolClient, trunk: string, most: number): Promise<number> {
  const { rows } = await client.query<{ taken: number }>(
    'select count(*)::integer as taken from trunk_slots where trunk = $1',
    [trunk],
  );
  return most - (rows[0]?.taken ?? 0);
}

async function takeCalls(
  client: PoolClient,
  trunk: string,
  count: number,
  ownerId: string,
): Promise<readonly AcceptedCall[]> {
  const { rows } = await client.query<CallColumns>(takeStatement, [trunk, count, ownerId]);
  return rows.map(acceptedCallOf);
}
