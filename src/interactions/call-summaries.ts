// The interactions view: pages of call summaries, newest first. `call-search.ts` finds the calls.

import type { DialTarget } from '../calls/call-types.ts';
import type { CallOutcome, CallState, InteractionStatus } from '../calls/contract/call-words.ts';
import type { AmdEventName } from '../calls/detection/amd-event.ts';
import { faultOf } from '../calls/life/call-outcome.ts';
import type { CallQuality } from '../calls/life/call-quality.ts';
import { type EndFacts, endFactsIn } from '../calls/life/end-facts.ts';
import type { RuleName } from '../calls/rules/rule-words.ts';
import { uriOfTarget } from '../calls/target/dial-target.ts';
import type { CallColumns } from '../store/calls/call-rows.ts';
import type { Queries } from '../store/queries.ts';
import { sql } from '../store/sql.ts';
import { currentVerdict } from './call-conditions.ts';
import type { AppScope, CallFilter, CallPage, CallScope, CallSummary } from './call-queries.ts';
import { findCalls } from './call-search.ts';

export type SummaryColumns = Omit<CallColumns, 'account_id' | 'app_id' | 'request'> & {
  // The ledger is the only writer of these columns, so the types are safe.
  readonly state: CallState;
  readonly status: InteractionStatus;
  readonly target: DialTarget;
  readonly caller: string;
  readonly trunk: string | null;
  readonly campaign: string | null;
  readonly machine_detection: string;
  readonly outcome: CallOutcome | null;
  readonly sip_status: number | null;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly rule: RuleName | null;
  readonly waits_for: RuleName | null;
  readonly not_before: Date | null;
  readonly verdict: AmdEventName | null;
  /** The `amd` events, in order. Null if there were no events or detection was off. */
  readonly amd_events: readonly { readonly event: AmdEventName; readonly reason: string }[] | null;
  readonly ringing_at: Date | null;
  readonly answered_at: Date | null;
  readonly ended_at: Date | null;
  /** Null while the call hasn't ended. Members that the end doesn't have are null. */
  readonly end_facts: Nullable<
    EndFacts & {
      readonly connectedIdentity?: string;
      readonly quality?: CallQuality;
      readonly notBefore?: string;
    }
  > | null;
};

type Nullable<Facts> = { readonly [Name in keyof Facts]?: Facts[Name] | null };

/** The `amd` events, in order. */
const amdEvents = sql`
  case when answered_at is not null and request->>'machineDetection' <> 'disabled' then (
    select jsonb_agg(
      jsonb_build_object('event', data->'amd'->'event', 'reason', data->'amd'->'reason') order by event_sequence)
    from call_events e where e.day = calls.day and e.call_id = calls.call_id and e.type = 'amd')
  end`;

/**
 * What the carrier said about the end, and how the call sounded. The terminal event has it, and its
 * key is known. So each call of a page costs one look-up, and the calls' table needs no columns
 * that are mostly empty.
 */
const endFacts = sql`
  case when ended_at is not null then (
    select json_build_object('cause', data->'cause', 'retryAfterS', data->'retryAfterS',
      'warning', data->'warning', 'block', data->'block', 'connectedIdentity', data->'connectedIdentity',
      'quality', data->'quality', 'notBefore', data->'notBefore')
    from call_events e
    where e.day = calls.day and e.call_id = calls.call_id and e.event_sequence = calls.last_event_sequence)
  end`;

/**
 * Selects single fields of the request instead of the whole request, because the metadata can be
 * 16 KiB and a page can list 200 calls.
 */
export const summaryColumns = sql`
  call_id, sid, conversation_id, bot_id, state, status, outcome, sip_status, accepted_at, ringing_at, answered_at, ended_at,
  request->'target' as target, request->>'caller' as caller, request->>'trunk' as trunk,
  request->>'campaign' as campaign,
  request->>'machineDetection' as machine_detection,
  reason, reason_code, rule, waits_for, not_before,
  ${currentVerdict} as verdict, ${amdEvents} as amd_events, ${endFacts} as end_facts`;

export async function listCalls(
  queries: Queries,
  scope: CallScope | AppScope,
  filter: CallFilter,
): Promise<CallPage | 'bad-cursor'> {
  const found = await findCalls(queries, scope, filter);
  if (found === 'bad-cursor') return found;
  const { callIds, ...rest } = found;
  return { calls: await readSummaries(queries, callIds), ...rest };
}

/** Reads the summaries of a page's calls. Omits calls that retention has just deleted. */
async function readSummaries(
  queries: Queries,
  callIds: readonly string[],
): Promise<readonly CallSummary[]> {
  if (callIds.length === 0) return [];
  const { rows } = await queries.query<SummaryColumns>(sql`
    select ${summaryColumns} from calls where call_id = any(${callIds}::text[])
    order by accepted_at desc, call_id desc`);
  const queued = rows.filter(({ state }) => state === 'queued').map((row) => row.call_id);
  const positions = await queuePositions(queries, queued);
  return rows.map((row) => {
    const queuePosition = positions.get(row.call_id);
    return { ...toSummary(row), ...(queuePosition === undefined ? {} : { queuePosition }) };
  });
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────

export function toSummary(row: SummaryColumns): CallSummary {
  return {
    callId: row.call_id,
    sid: row.sid,
    conversationId: row.conversation_id,
    botId: row.bot_id,
    state: row.state,
    status: row.status,
    target: uriOfTarget(row.target),
    caller: row.caller,
    machineDetection: row.machine_detection,
    acceptedAt: row.accepted_at.toISOString(),
    ...verdictOf(row),
    ...(row.trunk === null ? {} : { trunk: row.trunk }),
    ...(row.campaign === null ? {} : { campaign: row.campaign }),
    ...outcomeOf(row),
    ...(row.sip_status === null ? {} : { sipStatus: row.sip_status }),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.reason_code === null ? {} : { reasonCode: row.reason_code }),
    ...instantsOf(row),
    ...factsOf(row),
    ...rulesOf(row),
  };
}

function rulesOf({ rule, waits_for: waitsFor, not_before: until, end_facts }: SummaryColumns) {
  const notBefore = end_facts?.notBefore;
  return {
    ...(waitsFor === null || until === null
      ? {}
      : { waitsFor: { rule: waitsFor, until: until.toISOString() } }),
    ...(rule === null ? {} : { rule }),
    ...(notBefore == null ? {} : { notBefore }),
  };
}

function factsOf({ end_facts }: SummaryColumns) {
  const { connectedIdentity, cause, retryAfterS, warning, block, quality } = end_facts ?? {};
  return {
    ...endFactsIn({
      ...(cause == null ? {} : { cause }),
      ...(retryAfterS == null ? {} : { retryAfterS }),
      ...(warning == null ? {} : { warning }),
      ...(block == null ? {} : { block }),
    }),
    ...(connectedIdentity == null ? {} : { connectedIdentity }),
    ...(quality == null ? {} : { quality }),
  };
}

function verdictOf({ verdict, amd_events }: SummaryColumns) {
  if (verdict === null) return {};
  const events = amd_events ?? [];
  const reason = events.findLast(({ event }) => event === verdict)?.reason;
  const beep = events.some(({ event }) => event === 'amd_tone_detected');
  return {
    verdict,
    ...(reason === undefined ? {} : { verdictReason: reason }),
    ...(beep && { beep: true as const }),
  };
}

function outcomeOf({ outcome, sip_status: sipStatus }: SummaryColumns) {
  if (outcome === null) return {};
  const fault = faultOf({ outcome, ...(sipStatus !== null && { sipStatus }) });
  return { outcome, ...(fault !== undefined && { fault }) };
}

function instantsOf(row: SummaryColumns) {
  return {
    ...(row.ringing_at === null ? {} : { ringingAt: row.ringing_at.toISOString() }),
    ...(row.answered_at === null ? {} : { answeredAt: row.answered_at.toISOString() }),
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at.toISOString() }),
  };
}

/**
 * A column for queries on `calls`: the call's place in its trunk's queue. 1 is the next call. Null
 * if the call isn't queued any more.
 *
 * A trunk's calls are dialled in order of acceptance, then by id. So we count the calls ahead of
 * this call, ignoring any that are too old to be dialled. `end_published_at is null and not_before
 * is null` lets the planner use the index on open calls. A call that waits for a calling rule has
 * no place in the queue.
 */
export const queuePosition = sql`
  case when calls.end_published_at is null and calls.not_before is null and calls.ended_at is null and calls.dial_started_at is null then (
    select count(*)::integer + 1 from calls other
    where other.end_published_at is null and other.not_before is null and other.ended_at is null and other.dial_started_at is null
      and other.trunk is not distinct from calls.trunk and other.dial_before > clock_timestamp()
      and (other.accepted_at, other.call_id) < (calls.accepted_at, calls.call_id)
  ) end as queue_position`;

/**
 * Computes the queue positions for a page of calls in one statement. Using `queuePosition` for each
 * call would count the same queued calls over and over.
 */
async function queuePositions(
  queries: Queries,
  callIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (callIds.length === 0) return new Map();
  const { rows } = await queries.query<{ call_id: string; position: number }>(sql`
    select call_id, position from (
      select call_id, (row_number() over (partition by trunk order by accepted_at, call_id))::integer as position
      from calls
      where end_published_at is null and not_before is null and ended_at is null and dial_started_at is null
        and dial_before > clock_timestamp()
    ) as waiting where call_id = any(${callIds}::text[])`);
  return new Map(rows.map((row) => [row.call_id, row.position]));
}
