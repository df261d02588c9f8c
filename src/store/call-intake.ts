// Accepting calls: a batch of them in one statement, each with its idempotency key or without.

import type { Pool } from 'pg';
import type { AcceptedCall } from '../calls/call-types.ts';
import { GroupWriter } from './group-writer.ts';
import { jsonRows, storableJson } from './json-rows.ts';
import type { SecretBox } from './secrets.ts';

export type AcceptExtra = {
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  readonly idempotency?: { readonly key: string; readonly requestHash: string };
};

/** What the caller was, or is now, answered; kept with the idempotency key. */
export type AcceptedAnswer = {
  readonly sid: string;
  readonly callId: string;
  readonly conversationId: string;
};

export type AcceptResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'replayed'; readonly answer: AcceptedAnswer }
  | { readonly kind: 'conflict' };

type Item = {
  /** The call id. */
  readonly key: string;
  /** The row as JSON, made for each call by itself, so that one that cannot be written down fails alone. */
  readonly row: string;
  readonly requestHash: string | undefined;
};

// A key is taken where it is free or has expired; what did not get its key is not inserted. Sorted by `distinct on`, so that
// two batches with the same keys wait for each other in the same order.
const acceptStatement = `
with input as (
  select * from json_to_recordset($1::json) as i(
    call_id text, sid text, conversation_id text, account_id text, app_id text, bot_id text, request jsonb,
    notify_url text, notify_headers bytea, accepted_at timestamptz, trunk text, dial_before timestamptz, key text, request_hash text)
), taken as (
  insert into idempotency_keys (app_id, bot_id, key, request_hash, call_id, answer, expires_at)
  select distinct on (app_id, bot_id, key) app_id, bot_id, key, request_hash, call_id,
    jsonb_build_object('sid', sid, 'callId', call_id, 'conversationId', conversation_id),
    accepted_at + interval '24 hours'
  from input where key is not null
  order by app_id, bot_id, key, accepted_at
  on conflict (app_id, bot_id, key) do update
    set request_hash = excluded.request_hash, call_id = excluded.call_id,
      answer = excluded.answer, expires_at = excluded.expires_at
    where idempotency_keys.expires_at <= excluded.expires_at - interval '24 hours'
  returning call_id
)
insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, notify_url, notify_headers,
  state, status, accepted_at, trunk, dial_before, idempotency_key)
select call_id, sid, conversation_id, account_id, app_id, bot_id, request, notify_url, notify_headers,
  'queued', 'queued', accepted_at, trunk, dial_before, key
from input where key is null or call_id in (select call_id from taken)
returning call_id`;

const earlierStatement = `
select i.call_id, k.request_hash, k.answer
from json_to_recordset($1::json) as i(call_id text, app_id text, bot_id text, key text)
join idempotency_keys k using (app_id, bot_id, key)`;

/** One batch at a time on the one session of PGlite; on PostgreSQL a second is written while the first is being synced. */
export function createCallIntake(
  pool: Pool,
  secrets: SecretBox,
  concurrency: number,
): (call: AcceptedCall, extra: AcceptExtra) => Promise<AcceptResult> {
  const writer = new GroupWriter<Item, Verdict>((items) => acceptBatch(pool, items), {
    maxBatch: 200,
    // Ten seconds' worth of what a node can take; the intake refuses with 429 long before.
    maxWaiting: 5_000,
    concurrency,
  });
  return async (call, extra) => {
    const verdict = await writer.add({
      key: call.callId,
      row: intakeRow(call, extra, secrets),
      requestHash: extra.idempotency?.requestHash,
    });
    if (verdict.kind === 'unanswered') {
      throw new Error('the earlier answer of an idempotency key could not be read', {
        cause: verdict.cause,
      });
    }
    return verdict;
  };
}

function intakeRow(call: AcceptedCall, extra: AcceptExtra, secrets: SecretBox): string {
  const headers =
    extra.notifyHeaders === undefined
      ? undefined
      : secrets.seal('notify-headers', call.callId, JSON.stringify(extra.notifyHeaders));
  return storableJson({
    call_id: call.callId,
    sid: call.sid,
    conversation_id: call.conversationId,
    account_id: call.accountId,
    app_id: call.appId,
    bot_id: call.botId,
    request: call.request,
    notify_url: call.request.notifyUrl,
    notify_headers: headers === undefined ? undefined : `\\x${headers.toString('hex')}`,
    accepted_at: call.acceptedAt,
    trunk: call.request.trunk,
    dial_before: new Date(call.acceptedAt.getTime() + call.request.queueTimeoutMs),
    key: extra.idempotency?.key,
    request_hash: extra.idempotency?.requestHash,
  });
}

type Verdict = AcceptResult | { readonly kind: 'unanswered'; readonly cause: unknown };

async function acceptBatch(pool: Pool, items: readonly Item[]): Promise<readonly Verdict[]> {
  const { rows } = await pool.query<{ call_id: string }>(acceptStatement, [
    jsonRows(items.map((item) => item.row)),
  ]);
  const accepted = new Set(rows.map((row) => row.call_id));
  const late = items.filter((item) => !accepted.has(item.key));
  const verdicts = late.length === 0 ? undefined : await judgeLate(pool, late);
  return items.map((item) => verdicts?.get(item.key) ?? { kind: 'accepted' });
}

type Earlier = {
  readonly call_id: string;
  readonly request_hash: string;
  readonly answer: AcceptedAnswer;
};

/** Never throws: the other calls of the batch are accepted by now, and must be told so. */
async function judgeLate(pool: Pool, late: readonly Item[]): Promise<Map<string, Verdict>> {
  try {
    const { rows } = await pool.query<Earlier>(earlierStatement, [
      jsonRows(late.map((item) => item.row)),
    ]);
    const earlier = new Map(rows.map((row) => [row.call_id, row]));
    return new Map(late.map((item) => [item.key, judge(item, earlier.get(item.key))]));
  } catch (cause) {
    return new Map(late.map((item) => [item.key, { kind: 'unanswered', cause }]));
  }
}

function judge(item: Item, earlier: Earlier | undefined): Verdict {
  // Only if the key expired and was purged between the two statements.
  if (earlier === undefined) return { kind: 'unanswered', cause: new Error('the key is gone') };
  return earlier.request_hash === item.requestHash
    ? { kind: 'replayed', answer: earlier.answer }
    : { kind: 'conflict' };
}
