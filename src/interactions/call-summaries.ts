// The interactions view: one page of calls, newest first, each as its summary.

import { and, desc, eq, gte, inArray, lt, type SQL, sql } from 'drizzle-orm';
import { faultOf } from '../calls/call-outcome.ts';
import type { DialTarget } from '../calls/call-types.ts';
import type { CallOutcome, CallState, InteractionStatus } from '../calls/contract/call-words.ts';
import type { Database } from '../store/database.ts';
import { calls } from '../store/schema.ts';
import type { AppScope, CallFilter, CallScope, CallSummary } from './call-queries.ts';

export type Db = Database['db'];

/** The request's members one by one: its metadata can be 16 KiB, and a page has up to 200 calls. */
export const summaryColumns = {
  callId: calls.callId,
  sid: calls.sid,
  conversationId: calls.conversationId,
  botId: calls.botId,
  state: calls.state,
  status: calls.status,
  target: sql<DialTarget>`${calls.request}->'target'`,
  caller: sql<string>`${calls.request}->>'caller'`,
  trunk: sql<string | null>`${calls.request}->>'trunk'`,
  machineDetection: sql<string>`${calls.request}->>'machineDetection'`,
  outcome: calls.outcome,
  sipStatus: calls.sipStatus,
  reason: sql<string | null>`${calls.endEvent}->'data'->>'reason'`,
  reasonCode: sql<string | null>`${calls.endEvent}->'data'->>'reasonCode'`,
  acceptedAt: calls.acceptedAt,
  ringingAt: calls.ringingAt,
  answeredAt: calls.answeredAt,
  endedAt: calls.endedAt,
};

type SummaryRow = {
  readonly [Column in keyof typeof summaryColumns]: (typeof summaryColumns)[Column]['_'] extends {
    data: infer Data;
    notNull: infer NotNull;
  }
    ? NotNull extends true
      ? Data
      : Data | null
    : (typeof summaryColumns)[Column] extends SQL<infer Value>
      ? Value
      : never;
};

export async function listCalls(
  db: Db,
  scope: CallScope | AppScope,
  filter: CallFilter,
): Promise<
  { readonly calls: readonly CallSummary[]; readonly nextCursor?: string } | 'bad-cursor'
> {
  const position = filter.cursor === undefined ? undefined : readCursor(filter.cursor);
  if (filter.cursor !== undefined && position === undefined) return 'bad-cursor';
  // One more than asked for tells whether there is another page.
  const limit = filter.limit + 1;
  const wanted = and(...conditions(filter), position && before(position));
  const rows = await db
    .select(summaryColumns)
    .from(calls)
    .where('botId' in scope ? and(inScope(scope), wanted) : inPageOf(scope, wanted, limit))
    .orderBy(desc(calls.acceptedAt), desc(calls.callId))
    .limit(limit);
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  return {
    calls: page.map(toSummary),
    ...(rows.length > page.length && last !== undefined ? { nextCursor: writeCursor(last) } : {}),
  };
}

export function inScope(scope: CallScope | AppScope): SQL | undefined {
  const ofAccount = eq(calls.accountId, scope.accountId);
  if ('botId' in scope) return and(ofAccount, eq(calls.botId, scope.botId));
  return scope.botIds === 'all' ? ofAccount : and(ofAccount, inArray(calls.botId, scope.botIds));
}

/** Each bot gives its own newest ones: that is what their index can. */
function inPageOf({ accountId, botIds }: AppScope, wanted: SQL | undefined, limit: number): SQL {
  const ofBot = and(eq(calls.accountId, accountId), sql`${calls.botId} = visible.bot_id`, wanted);
  const visible =
    botIds === 'all'
      ? botsOf(accountId)
      : sql`select unnest(${sql.param(botIds)}::text[]) as bot_id`;
  return sql`${calls.callId} in (
    select newest.call_id from (${visible}) as visible
    cross join lateral (
      select ${calls.acceptedAt}, ${calls.callId} from ${calls} where ${ofBot}
      order by ${calls.acceptedAt} desc, ${calls.callId} desc limit ${limit}
    ) as newest
    order by newest.accepted_at desc, newest.call_id desc limit ${limit})`;
}

/** Steps from bot to bot through the index, whatever the number of their calls. */
function botsOf(accountId: string): SQL {
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

function conditions(filter: CallFilter): readonly (SQL | undefined)[] {
  const { status, state, outcome, idempotencyKey, acceptedFrom, acceptedTo } = filter;
  return [
    status && eq(calls.status, status),
    state && eq(calls.state, state),
    outcome && eq(calls.outcome, outcome),
    idempotencyKey === undefined ? undefined : eq(calls.idempotencyKey, idempotencyKey),
    acceptedFrom && gte(calls.acceptedAt, acceptedFrom),
    acceptedTo && lt(calls.acceptedAt, acceptedTo),
  ];
}

// ── Cursor ───────────────────────────────────────────────────────────────────────────────────────────────────────────
// The place after a call in (accepted_at, call_id) order: calls that are accepted later come before it and move nothing.

type Position = { readonly acceptedAt: Date; readonly callId: string };

function before({ acceptedAt, callId }: Position): SQL {
  return sql`(${calls.acceptedAt}, ${calls.callId}) < (${acceptedAt.toISOString()}::timestamptz, ${callId})`;
}

function writeCursor({ acceptedAt, callId }: Position): string {
  return Buffer.from(`${acceptedAt.getTime()}.${callId}`).toString('base64url');
}

function readCursor(text: string): Position | undefined {
  const parts = /^(\d{1,14})\.(call-[0-9A-Za-z-]{1,64})$/.exec(
    Buffer.from(text, 'base64url').toString('latin1'),
  );
  if (parts?.[1] === undefined || parts[2] === undefined) return undefined;
  return { acceptedAt: new Date(Number(parts[1])), callId: parts[2] };
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

export function toSummary(row: SummaryRow): CallSummary {
  return {
    callId: row.callId,
    sid: row.sid,
    conversationId: row.conversationId,
    botId: row.botId,
    // Words of ours, written by the ledger.
    state: row.state as CallState,
    status: row.status as InteractionStatus,
    target: formatTarget(row.target),
    caller: row.caller,
    machineDetection: row.machineDetection,
    acceptedAt: row.acceptedAt.toISOString(),
    ...(row.trunk === null ? {} : { trunk: row.trunk }),
    ...outcomeOf(row),
    ...(row.sipStatus === null ? {} : { sipStatus: row.sipStatus }),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.reasonCode === null ? {} : { reasonCode: row.reasonCode }),
    ...instants(row),
  };
}

function outcomeOf({ outcome, sipStatus }: SummaryRow) {
  if (outcome === null) return {};
  const end = { outcome: outcome as CallOutcome, ...(sipStatus !== null && { sipStatus }) };
  const fault = faultOf(end);
  return { outcome: end.outcome, ...(fault !== undefined && { fault }) };
}

function instants({ ringingAt, answeredAt, endedAt }: SummaryRow) {
  return {
    ...(ringingAt === null ? {} : { ringingAt: ringingAt.toISOString() }),
    ...(answeredAt === null ? {} : { answeredAt: answeredAt.toISOString() }),
    ...(endedAt === null ? {} : { endedAt: endedAt.toISOString() }),
  };
}

function formatTarget(target: DialTarget): string {
  if (target.kind === 'tel') return `tel:+${target.number}`;
  const port = target.port === undefined ? '' : `:${target.port}`;
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  return `sip:${target.user}@${host}${port}`;
}
