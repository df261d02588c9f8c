// Accepts calls. One statement stores a batch of calls, each with its first event, and with its
// idempotency key if it has one. A request whose key is already stored gets the stored answer, or a
// conflict if the request differs. If this process can take calls, the same statement takes the new
// calls for it.

import type { Pool } from 'pg';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type {
  AcceptExtra,
  AcceptResult,
  CallIntake,
  CallSource,
  DialoutAnswer,
  EarlierResult,
  Idempotency,
  LimitName,
  TakeAlong,
} from '../../calls/dialout-ports.ts';
import { queuedEvent } from '../../calls/life/call-events.ts';
import { targetsOf } from '../../calls/target/app-limits.ts';
import { Batcher, BatchQueueFullError } from '../../lib/batcher.ts';
import { GroupWriter } from '../group-writer.ts';
import { jsonRows, storableJson } from '../json-rows.ts';
import type { SecretBox } from '../secrets.ts';
import { isCertainlyUndone, isReadOnlyServer } from '../sql-errors.ts';
import {
  type TakenRow,
  type Taker,
  takeAlongClause,
  takeArguments,
  takenFrom,
} from './call-takes.ts';
import { earlierStatement } from './earlier-requests.ts';
import { acceptWithin, type LimitedCall } from './limited-intake.ts';

type Item = {
  /** The call id. */
  readonly key: string;
  /**
   * The row as JSON. Each call's row is built separately, so a call that can't be serialised
   * doesn't fail the others.
   */
  readonly row: string;
  readonly requestHash: string | undefined;
};

type NewItem = Item & {
  readonly owesNotification: boolean;
  readonly source: CallSource;
  readonly takeAlong: AcceptExtra['takeAlong'];
};
type KeyedItem = Item & { readonly requestHash: string };

type LimitedItem = NewItem & { readonly call: LimitedCall };

const acceptedCalls = 'select call_id from accepted';

const owedNotifications = `, owed as (
  insert into notifications (day, event_id, call_id, account_id, bot_id, sequence, event_sequence, state, attempts, created_at)
  select day, queued_id, call_id, account_id, bot_id, 1, 1, 'pending', 0, accepted_at
  from input join accepted using (call_id) where queued_origin is not null
), queues as (
  insert into notification_lanes (call_id, day, account_id, origin, next_attempt_at)
  select call_id, day, account_id, queued_origin, accepted_at
  from input join accepted using (call_id) where queued_origin is not null
)`;

// A call is only inserted if its key is unused or has expired. A key begins to expire when its call
// is settled (`src/store/outbox/settling.ts`), because a call may wait for days.
// `distinct on` sorts the keys, so two batches with the same keys lock them in the same order.
const statements = {
  plain: {
    accept: { name: 'accept calls', text: acceptText('', acceptedCalls) },
    take: { name: 'accept calls and take them', text: acceptText('', takeAlongClause) },
  },
  /**
   * For a batch in which at least one call needs a notification for its first event. The statement
   * stores the notification and its queue in the same commit.
   */
  owing: {
    accept: {
      name: 'accept calls that owe a notification',
      text: acceptText(owedNotifications, acceptedCalls),
    },
    take: {
      name: 'accept calls that owe a notification, and take them',
      text: acceptText(owedNotifications, takeAlongClause),
    },
  },
} as const;

function statementsFor(items: readonly NewItem[]) {
  const owesAny = items.some(({ owesNotification }) => owesNotification);
  return statements[owesAny ? 'owing' : 'plain'];
}

function acceptText(more: '' | `, ${string}`, result: string): string {
  return `
with input as (
  select * from json_to_recordset($1::json) as i(
    call_id text, sid text, conversation_id text, account_id text, app_id text, bot_id text, request jsonb,
    notify_url text, notify_headers bytea, accepted_at timestamptz, trunk text, dial_before timestamptz, key text, request_hash text,
    queued_id text, queued_data json, queued_origin text, remarks jsonb)
), taken as (
  insert into idempotency_keys (app_id, bot_id, key, request_hash, call_id, answer, expires_at)
  select distinct on (app_id, bot_id, key) app_id, bot_id, key, request_hash, call_id,
    jsonb_build_object('sid', sid, 'callId', call_id, 'conversationId', conversation_id) || coalesce(remarks, '{}'),
    'infinity'::timestamptz
  from input where key is not null
  order by app_id, bot_id, key, accepted_at
  on conflict (app_id, bot_id, key) do update
    set request_hash = excluded.request_hash, call_id = excluded.call_id,
      answer = excluded.answer, expires_at = excluded.expires_at
    where idempotency_keys.expires_at <=
      (select accepted_at from input where input.call_id = excluded.call_id)
  returning call_id
), accepted as (
  insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, notify_url, notify_headers,
    state, status, accepted_at, trunk, dial_before, idempotency_key, last_event_sequence, last_notification_sequence)
  select call_id, sid, conversation_id, account_id, app_id, bot_id, request, notify_url, notify_headers,
    'queued', 'queued', accepted_at, trunk, dial_before, key, 1, case when queued_origin is not null then 1 end
  from input where key is null or call_id in (select call_id from taken)
  returning call_id, day
), stated as (
  insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
  select day, call_id, 1, queued_id, 'queued', accepted_at, queued_data from input join accepted using (call_id)
)${more}
${result}`;
}

/**
 * A batch of more calls is stored without taking them along. A busy process has such batches, and
 * then one take for many calls costs little. The statement would work for so long after the take
 * that calls missed their turns on a trunk.
 */
const maxTakenAlong = 10;

/** The process that takes calls along with those that it accepts. */
export type TakerOfCalls = Pick<Taker, 'ownerId' | 'permits'>;

/**
 * On PGlite, which only has one session, the intake writes one batch at a time. On PostgreSQL, it
 * writes a second batch while the first is being synced to disk. Without a taker, no calls are
 * taken along.
 */
export function createCallIntake(
  pool: Pool,
  secrets: SecretBox,
  concurrency: number,
  taker?: TakerOfCalls,
): CallIntake {
  const batches = {
    maxBatch: 200,
    // A node can accept this many calls in ten seconds. In practice, the intake responds with 429
    // long before this limit is reached.
    maxWaiting: 5_000,
  };
  const writer = new GroupWriter<NewItem, Acceptance>((items) => acceptBatch(pool, items, taker), {
    ...batches,
    concurrency,
  });
  // Limited calls use a separate writer, so that calls without limits don't have to wait for locks.
  const limitedWriter = new GroupWriter<LimitedItem, Acceptance>(
    (items) => acceptLimitedBatch(pool, items),
    { ...batches, concurrency: 1 },
  );
  const accept: CallIntake['accept'] = async (call, extra) => {
    const item = newItem(call, extra, secrets);
    const limited = limitedCall(call, extra);
    const added =
      limited === undefined ? writer.add(item) : limitedWriter.add({ ...item, call: limited });
    const { endTake: end, ...verdict }: Acceptance = await added.catch(notStored);
    // By then, all calls of the batch are known to be stored, and their `queued` events on their
    // way. An event of a call that has begun must not overtake them.
    if (end !== undefined) setImmediate(end);
    if (verdict.kind === 'unanswered') {
      throw new Error('the earlier answer of an idempotency key could not be read', {
        cause: verdict.cause,
      });
    }
    const isReadOnly = verdict.kind === 'not-stored' && isReadOnlyServer(verdict.cause);
    const { idempotency } = extra;
    if (!isReadOnly || idempotency === undefined) return verdict;
    const asked = async (): Promise<AcceptResult> =>
      (await earlier(call, idempotency)) ?? { ...verdict, isKeyNew: true };
    return await asked().catch(() => verdict);
  };
  // We batch these too, because many clients repeat their requests when the intake queue is full.
  const asking = new Batcher<KeyedItem, EarlierResult | undefined>(
    (items) => readEarlier(pool, items),
    {
      ...batches,
      concurrency: 1,
    },
  );
  const earlier: CallIntake['earlier'] = (call, idempotency) =>
    asking.add(keyedItem(call, idempotency));
  return { accept, earlier };
}

function newItem(call: AcceptedCall, extra: AcceptExtra, secrets: SecretBox): NewItem {
  return {
    key: call.callId,
    row: intakeRow(call, extra, secrets),
    requestHash: extra.idempotency?.requestHash,
    owesNotification: extra.queuedNotification !== undefined,
    source: call.request.trunk,
    takeAlong: extra.takeAlong,
  };
}

function keyedItem(
  { callId, appId, botId, acceptedAt }: AcceptedCall,
  { key, requestHash }: Idempotency,
): KeyedItem {
  const row = { call_id: callId, app_id: appId, bot_id: botId, key, accepted_at: acceptedAt };
  return { key: callId, row: storableJson(row), requestHash };
}

/** @throws the cause, if the call may have been stored */
function notStored(cause: unknown): AcceptResult {
  if (cause instanceof BatchQueueFullError || isCertainlyUndone(cause)) {
    return { kind: 'not-stored', cause };
  }
  throw cause;
}

function limitedCall(
  { callId, appId, botId, acceptedAt, request }: AcceptedCall,
  { limits, idempotency }: AcceptExtra,
): LimitedCall | undefined {
  if (limits === undefined) return undefined;
  const key = idempotency === undefined ? {} : { idempotencyKey: idempotency.key };
  return { callId, appId, botId, acceptedAt, targets: targetsOf(request), limits, ...key };
}

function intakeRow(call: AcceptedCall, extra: AcceptExtra, secrets: SecretBox): string {
  const headers =
    extra.notifyHeaders === undefined
      ? undefined
      : secrets.seal('notify-headers', call.callId, JSON.stringify(extra.notifyHeaders));
  const queued = queuedEvent(call);
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
    queued_id: queued.id,
    queued_data: queued.data,
    queued_origin: extra.queuedNotification?.origin,
    remarks: extra.remarks,
  });
}

type Acceptance = (AcceptResult | { readonly kind: 'unanswered'; readonly cause: unknown }) & {
  readonly endTake?: () => void;
};

async function acceptBatch(
  pool: Pool,
  items: readonly NewItem[],
  taker: TakerOfCalls | undefined,
): Promise<readonly Acceptance[]> {
  const along = taker === undefined ? undefined : beginTake(items);
  const stored =
    taker === undefined || along === undefined
      ? { accepted: await insertCalls(pool, items) }
      : await insertAndTake({ ...taker, pool }, items, along);
  return await judgeAll(pool, items, stored);
}

/**
 * Begins a take for the batch. A take has one source, so a batch with several gets none. Neither
 * does a large one: the calls of a large batch share the next take, which begins sooner than this
 * statement could end.
 */
function beginTake(items: readonly NewItem[]): TakeAlong | undefined {
  const [first] = items;
  const isOneSource = items.every(({ source }) => source === first?.source);
  if (!isOneSource || items.length > maxTakenAlong) return undefined;
  return first?.takeAlong?.(items.length);
}

/** A row of `takeAlongClause`. */
type AlongRow = { readonly accepted: readonly string[] } & (
  | TakenRow
  /** Nothing could be taken. */
  | { readonly call_id: null; readonly took_ms: null }
);

async function insertAndTake(
  taker: Taker,
  items: readonly NewItem[],
  along: TakeAlong,
): Promise<Stored> {
  try {
    const { rows } = await taker.pool.query<AlongRow>({
      ...statementsFor(items).take,
      values: [jsonRows(items.map(({ row }) => row)), ...takeArguments(taker, along.request)],
    });
    return {
      accepted: new Set(rows[0]?.accepted),
      taken: new Set(rows.flatMap(({ call_id: callId }) => (callId === null ? [] : [callId]))),
      endTake: () => report(taker, rows, along),
    };
  } catch (error) {
    if (isCertainlyUndone(error)) along.undone();
    else along.lost(error);
    throw error;
  }
}

/** Tells the taker what was taken along. */
function report(taker: Taker, rows: readonly AlongRow[], along: TakeAlong): void {
  const taken = rows.filter(
    (row): row is Extract<AlongRow, TakenRow> => row.call_id !== null || row.took_ms !== null,
  );
  if (taken.length === 0) along.undone();
  else void takenFrom(taker, along.request, taken).then(along.taken, along.lost);
}

async function acceptLimitedBatch(
  pool: Pool,
  items: readonly LimitedItem[],
): Promise<readonly Acceptance[]> {
  const { accepted, refused } = await acceptWithin(
    pool,
    items.map(({ call }) => call),
    (client, admitted) =>
      insertCalls(
        client,
        items.filter(({ key }) => admitted.has(key)),
      ),
  );
  return await judgeAll(pool, items, { accepted, refused });
}

async function insertCalls(
  sql: Pick<Pool, 'query'>,
  items: readonly NewItem[],
): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  const { rows } = await sql.query<{ call_id: string }>({
    ...statementsFor(items).accept,
    values: [jsonRows(items.map((item) => item.row))],
  });
  return new Set(rows.map((row) => row.call_id));
}

type Stored = {
  readonly accepted: ReadonlySet<string>;
  /** The calls of any batch that this process has taken along. */
  readonly taken?: ReadonlySet<string>;
  readonly refused?: ReadonlyMap<string, LimitName>;
  /** Call this once all that wait for the batch have been told. */
  readonly endTake?: () => void;
};

async function judgeAll(
  pool: Pool,
  items: readonly Item[],
  { accepted, taken, refused, endTake: end }: Stored,
): Promise<readonly Acceptance[]> {
  const late = items.filter((item) => !accepted.has(item.key) && refused?.has(item.key) !== true);
  const verdicts = late.length === 0 ? undefined : await judgeLate(pool, late);
  const judgeOne = (item: Item): Acceptance => {
    const limit = refused?.get(item.key);
    if (limit !== undefined) return { kind: 'refused', limit };
    if (taken?.has(item.key) === true) return { kind: 'accepted', isTaken: true };
    return verdicts?.get(item.key) ?? { kind: 'accepted' };
  };
  return items.map((item, index) => {
    const verdict = judgeOne(item);
    // One item of the batch ends the take.
    return index === 0 && end !== undefined ? { ...verdict, endTake: end } : verdict;
  });
}

type Earlier = {
  readonly call_id: string;
  readonly request_hash: string;
  readonly answer: DialoutAnswer;
};

/**
 * Never throws, because the other calls in the batch have already been accepted, and their clients
 * must receive that response.
 */
async function judgeLate(pool: Pool, late: readonly Item[]): Promise<Map<string, Acceptance>> {
  try {
    const earlier = await readEarlier(pool, late);
    // This only happens if the key expired and was purged between the two statements.
    const gone = {
      kind: 'unanswered',
      cause: new Error('the idempotency key was deleted'),
    } as const;
    return new Map(late.map((item, index) => [item.key, earlier[index] ?? gone]));
  } catch (cause) {
    return new Map(late.map((item) => [item.key, { kind: 'unanswered', cause }]));
  }
}

async function readEarlier(
  pool: Pool,
  items: readonly Item[],
): Promise<readonly (EarlierResult | undefined)[]> {
  const { rows } = await pool.query<Earlier>(earlierStatement, [
    jsonRows(items.map((item) => item.row)),
  ]);
  const earlier = new Map(rows.map((row) => [row.call_id, row]));
  return items.map((item) => judge(item, earlier.get(item.key)));
}

function judge(item: Item, earlier: Earlier | undefined): EarlierResult | undefined {
  if (earlier === undefined) return undefined;
  return earlier.request_hash === item.requestHash
    ? { kind: 'replayed', answer: earlier.answer }
    : { kind: 'conflict' };
}
