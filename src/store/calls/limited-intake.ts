// Accepts calls for apps with limits. The counts are exact across nodes, because a transaction
// keeps the app's `app_usage` row locked from the count to the commit. The next node that accepts
// calls for this app therefore sees what this node has accepted.
//
// We count simultaneous calls by looking at the calls themselves, because a counter would remain
// wrong forever once a process has died. The daily limit does use a counter, because there may be a
// million calls in a day.

import type { Pool, PoolClient } from 'pg';
import type { DialTarget } from '../../calls/call-types.ts';
import type { LimitName } from '../../calls/dialout-ports.ts';
import { type AppLimits, mayDial } from '../../calls/target/app-limits.ts';
import { inTransaction } from '../transaction.ts';
import { earlierStatement } from './earlier-requests.ts';

export type LimitedCall = {
  readonly callId: string;
  readonly appId: string;
  readonly acceptedAt: Date;
  /** The call's target, and the targets that the callee may later be connected to. */
  readonly targets: readonly DialTarget[];
  readonly limits: AppLimits;
  /** Unique per app and bot. Omitted if the request doesn't contain a key. */
  readonly idempotencyKey?: string;
  readonly botId: string;
};

const dayMs = 86_400_000;

// The nodes' clocks differ, so once a day has started on one node, it has started on all of them.
const lockStatement = `
insert into app_usage (app_id, day, calls)
select app_id, day, 0 from json_to_recordset($1::json) as i(app_id text, day integer) order by app_id
on conflict (app_id) do update set day = greatest(app_usage.day, excluded.day),
  calls = case when app_usage.day < excluded.day then 0 else app_usage.calls end
returning app_id, calls`;

// With `end_published_at is null and not_before is null`, the planner uses the index of open calls.
// Calls that wait for a calling rule don't count, because they may wait for days. They count again
// when they are released.
const openStatement = `
select app_id, count(*)::integer as calls from calls
where end_published_at is null and not_before is null and ended_at is null and app_id = any($1::text[]) group by app_id`;

const countStatement = `
update app_usage u set calls = u.calls + i.calls
from json_to_recordset($1::json) as i(app_id text, calls integer) where u.app_id = i.app_id`;

/**
 * Rejects the calls that exceed a limit, and passes the rest to `accept`, all in one transaction.
 * `accept` returns the ids of the new calls. Repeated requests are passed on too, because they get
 * the original response and don't count towards any limit.
 */
export async function acceptWithin(
  pool: Pool,
  calls: readonly LimitedCall[],
  accept: (client: PoolClient, callIds: ReadonlySet<string>) => Promise<ReadonlySet<string>>,
): Promise<{
  readonly accepted: ReadonlySet<string>;
  readonly refused: ReadonlyMap<string, LimitName>;
}> {
  return await inTransaction(pool, async (client) => {
    const usage = await lockUsage(client, calls);
    const known = await knownCalls(client, calls);
    const refused = refuse(calls, known, usage);
    const admitted = new Set(
      calls.map(({ callId }) => callId).filter((callId) => !refused.has(callId)),
    );
    const accepted = await accept(client, admitted);
    const counts = countByApp(calls.filter(({ callId }) => accepted.has(callId)));
    const rows = [...counts].map(([appId, count]) => ({ app_id: appId, calls: count }));
    if (rows.length > 0) await client.query(countStatement, [JSON.stringify(rows)]);
    return { accepted, refused };
  });
}

type Usage = { readonly open: number; readonly today: number };

async function lockUsage(
  client: PoolClient,
  calls: readonly LimitedCall[],
): Promise<ReadonlyMap<string, Usage>> {
  const days = new Map<string, number>();
  for (const { appId, acceptedAt } of calls) {
    const day = Math.floor(acceptedAt.getTime() / dayMs);
    days.set(appId, Math.max(day, days.get(appId) ?? 0));
  }
  const rows = [...days].map(([appId, day]) => ({ app_id: appId, day }));
  type Count = { readonly app_id: string; readonly calls: number };
  const today = await client.query<Count>(lockStatement, [JSON.stringify(rows)]);
  // This must be a separate statement after the lock, so that it sees what other nodes have
  // accepted in the meantime.
  const open = await client.query<Count>(openStatement, [[...days.keys()]]);
  const openByApp = new Map(open.rows.map((row) => [row.app_id, row.calls]));
  return new Map(
    today.rows.map((row) => [
      row.app_id,
      { today: row.calls, open: openByApp.get(row.app_id) ?? 0 },
    ]),
  );
}

async function knownCalls(
  client: PoolClient,
  calls: readonly LimitedCall[],
): Promise<ReadonlySet<string>> {
  const keyed = calls.flatMap(({ callId, appId, botId, idempotencyKey, acceptedAt }) =>
    idempotencyKey === undefined
      ? []
      : {
          call_id: callId,
          app_id: appId,
          bot_id: botId,
          key: idempotencyKey,
          accepted_at: acceptedAt,
        },
  );
  if (keyed.length === 0) return new Set();
  const { rows } = await client.query<{ call_id: string }>(earlierStatement, [
    JSON.stringify(keyed),
  ]);
  return new Set(rows.map((row) => row.call_id));
}

function refuse(
  calls: readonly LimitedCall[],
  known: ReadonlySet<string>,
  usage: ReadonlyMap<string, Usage>,
): ReadonlyMap<string, LimitName> {
  const refused = new Map<string, LimitName>();
  const admitted = new Map<string, number>();
  const keys = new Set<string>();
  for (const call of calls) {
    const key =
      call.idempotencyKey === undefined
        ? undefined
        : JSON.stringify([call.appId, call.botId, call.idempotencyKey]);
    // If a call repeats another call in the same batch, it's a replay.
    if (known.has(call.callId) || (key !== undefined && keys.has(key))) continue;
    const more = admitted.get(call.appId) ?? 0;
    const limit = limitReached(call, usage.get(call.appId), more);
    if (limit !== undefined) {
      refused.set(call.callId, limit);
      continue;
    }
    admitted.set(call.appId, more + 1);
    if (key !== undefined) keys.add(key);
  }
  return refused;
}

function limitReached(
  { limits, targets }: LimitedCall,
  { open, today }: Usage = { open: 0, today: 0 },
  more: number,
): LimitName | undefined {
  if (!targets.every((target) => mayDial(limits, target))) return 'target';
  if (open + more >= (limits.callsAtOnce ?? Number.POSITIVE_INFINITY)) return 'callsAtOnce';
  if (today + more >= (limits.callsPerDay ?? Number.POSITIVE_INFINITY)) return 'callsPerDay';
  return undefined;
}

function countByApp(calls: readonly LimitedCall[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { appId } of calls) counts.set(appId, (counts.get(appId) ?? 0) + 1);
  return counts;
}
