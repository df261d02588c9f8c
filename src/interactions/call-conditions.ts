// The conditions of a list's filters, as SQL on `calls`.

import { amdVerdicts } from '../calls/detection/amd-event.ts';
import { uuidsFrom } from '../lib/ids.ts';
import { calleeNumber, campaign } from '../store/schema/calls.ts';
import { type Sql, sql } from '../store/sql.ts';
import type { AppScope, CallFilter, CallScope } from './call-queries.ts';

/**
 * The verdict. While the call is up, we use the last deciding `amd` event, because a later verdict
 * corrects an earlier one. Few calls are up at any time, so this doesn't read many events.
 */
export const currentVerdict = sql`
  case
    when calls.ended_at is not null then calls.verdict
    when answered_at is not null and request->>'machineDetection' <> 'disabled' then (
      select data->'amd'->>'event' from call_events e
      where e.day = calls.day and e.call_id = calls.call_id and e.type = 'amd' and (data->'amd'->'corrects' is not null
        or data->'amd'->>'event' = any(${amdVerdicts}::text[]))
      order by event_sequence desc limit 1)
  end`;

/**
 * Calls that the totals don't contain yet. Calls that wait for a calling rule aren't in the index
 * of the other unsettled calls, so the condition names both indexes.
 */
export const isUnsettled = sql`(end_published_at is null and not_before is null or not_before is not null)`;

export function inScope({ accountId, ...scope }: CallScope | AppScope): Sql {
  const inAccount = sql`account_id = ${accountId}`;
  if ('botId' in scope) return sql`${inAccount} and bot_id = ${scope.botId}`;
  return scope.botIds === 'all'
    ? inAccount
    : sql`${inAccount} and bot_id = any(${scope.botIds}::text[])`;
}

/** The filters that an index looks up. Each of these indexes begins with the account. */
export const keyConditions = {
  callIdPrefix: (prefix: string) => {
    // A prefix is a range of the primary key.
    const { first, last } = uuidsFrom(prefix.slice('call-'.length));
    return sql`call_id between ${`call-${first}`} and ${`call-${last}`}`;
  },
  idempotencyKey: (key: string) => sql`idempotency_key = ${key}`,
  number: (digits: string) => sql`${calleeNumber} = ${digits}`,
  campaign: (name: string) => sql`${campaign} = ${name}`,
} as const;
export type KeyFilter = keyof typeof keyConditions;

/** The filters that no index looks up. */
export function otherConditions({
  status,
  state,
  outcome,
  verdict,
  metadata = {},
}: Omit<CallFilter, 'limit'>): readonly Sql[] {
  return [
    ...(status === undefined ? [] : [sql`status = ${status}`]),
    ...(state === undefined ? [] : [sql`state = ${state}`]),
    ...(outcome === undefined ? [] : [sql`outcome = ${outcome}`]),
    ...(verdict === undefined ? [] : [sql`${currentVerdict} = ${verdict}`]),
    ...Object.entries(metadata).map(
      ([name, value]) => sql`request->'metadata'->>${name}::text = ${value}`,
    ),
  ];
}

/** Finds the account's bots by skipping through the index, without reading all their calls. */
export function botsOf(accountId: string): Sql {
  return sql`
    with recursive known (bot_id) as (
      (select bot_id from calls where account_id = ${accountId} order by bot_id limit 1)
      union all
      select (
        select bot_id from calls
        where account_id = ${accountId} and bot_id > known.bot_id order by bot_id limit 1)
      from known where known.bot_id is not null)
    select bot_id from known where bot_id is not null`;
}
