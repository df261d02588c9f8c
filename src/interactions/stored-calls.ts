// Implements `CallQueries` with SQL.

import type { CallContext } from '../calls/contract/call-context.ts';
import type { CallState } from '../calls/contract/call-words.ts';
import { contextOf, notificationOf } from '../calls/contract/event-table.ts';
import type { CallIdentity } from '../calls/contract/identity.ts';
import {
  type EventColumns,
  type IdentityColumns,
  identityOf,
  toCallEvent,
} from '../store/calls/call-rows.ts';
import type { Database } from '../store/database.ts';
import { type Day, dayOf } from '../store/days.ts';
import type { Queries } from '../store/queries.ts';
import { findRecording } from '../store/recordings/recording-reads.ts';
import { sql } from '../store/sql.ts';
import { inScope } from './call-conditions.ts';
import type {
  AppScope,
  CallDetails,
  CallQueries,
  CallScope,
  NotificationView,
  TimelineEntry,
} from './call-queries.ts';
import { callRecording } from './call-recording.ts';
import {
  listCalls,
  queuePosition,
  type SummaryColumns,
  summaryColumns,
  toSummary,
} from './call-summaries.ts';
import { summarizeCalls } from './call-totals.ts';
import { summarizeCallers } from './caller-totals.ts';
import { readContextFacts } from './context-facts.ts';

type Metadata = Readonly<Record<string, unknown>>;

export function createCallQueries({ pool, reads }: Pick<Database, 'pool' | 'reads'>): CallQueries {
  const readsOf = ({ accountId }: CallScope | AppScope): Queries => reads(accountId);
  return {
    list: (scope, filter) => listCalls(readsOf(scope), scope, filter),
    summary: (scope, request) => summarizeCalls(readsOf(scope), scope, request),
    callers: (scope, request) => summarizeCallers(readsOf(scope), scope, request),
    state: (scope, callId) => stateOf(pool, scope, callId),
    details: (scope, callId) => details(readsOf(scope), scope, callId),
    context: (scope, callId) => context(readsOf(scope), scope, callId),
    notifications: (scope, callId) => notificationsOf(readsOf(scope), scope, callId),
  };
}

// ── One call ─────────────────────────────────────────────────────────────────────────────────────

type DetailsColumns = SummaryColumns & {
  readonly queue_position: number | null;
  readonly metadata: Metadata;
};

async function stateOf(
  queries: Queries,
  scope: CallScope,
  callId: string,
): Promise<CallState | undefined> {
  const { rows } = await queries.query<{ state: CallState }>(
    sql`select state from calls where ${inScope(scope)} and call_id = ${callId}`,
  );
  return rows[0]?.state;
}

async function details(
  queries: Queries,
  scope: CallScope | AppScope,
  callId: string,
): Promise<CallDetails | undefined> {
  const { rows } = await queries.query<DetailsColumns>(sql`
    select ${summaryColumns}, ${queuePosition}, request->'metadata' as metadata
    from calls where ${inScope(scope)} and call_id = ${callId}`);
  const [row] = rows;
  if (row === undefined) return undefined;
  const timeline = await storedTimeline(queries, callId, dayOf(row.accepted_at));
  const recording = callRecording(await findRecording(queries, callId), timeline);
  return {
    ...toSummary(row),
    ...(row.queue_position === null ? {} : { queuePosition: row.queue_position }),
    metadata: row.metadata,
    ...(recording === undefined ? {} : { recording }),
    timeline,
  };
}

async function storedTimeline(
  queries: Queries,
  callId: string,
  day: Day,
): Promise<readonly TimelineEntry[]> {
  const { rows } = await queries.query<Omit<TimelineEntry, 'time'> & { readonly time: Date }>(
    `select event_id as "eventId", event_sequence as "eventSequence", type, time, data
     from call_events where call_id = $1 and day = $2 order by event_sequence`,
    [callId, day],
  );
  return rows.map((row) => ({ ...row, time: row.time.toISOString() }));
}

async function context(
  queries: Queries,
  scope: CallScope,
  callId: string,
): Promise<CallContext | undefined> {
  const facts = await readContextFacts(queries, callId, inScope(scope));
  return facts && contextOf(facts.metadata, facts.events);
}

// ── Notifications ────────────────────────────────────────────────────────────────────────────────

async function notificationsOf(
  queries: Queries,
  scope: CallScope,
  callId: string,
): Promise<readonly NotificationView[] | undefined> {
  const { rows: calls } = await queries.query<IdentityColumns & { accepted_at: Date }>(
    sql`select call_id, sid, conversation_id, account_id, app_id, bot_id, accepted_at
      from calls where ${inScope(scope)} and call_id = ${callId}`,
  );
  const [call] = calls;
  if (call === undefined) return undefined;
  const values = [callId, dayOf(call.accepted_at)];
  const readRows = async <Columns extends object>(from: string): Promise<readonly Columns[]> =>
    (await queries.query<Columns>(from, values)).rows;
  const sent = await readRows<NotificationColumns>(
    `select notifications.event_id, sequence, state, created_at, delivered_at, failed_at, failure, event_sequence, type, time, data
     from notifications join call_events using (day, call_id, event_sequence)
     where call_id = $1 and day = $2 order by sequence`,
  );
  const waiting = await readRows<{ readonly next_attempt_at: Date }>(
    `select next_attempt_at from notification_lanes
     where call_id = $1 and day = $2 and leased_by is null`,
  );
  const attempts = await readRows<AttemptColumns>(
    `select event_id, attempt, started_at, duration_ms, response_status, error, delivered
     from delivery_attempts where call_id = $1 and day = $2 order by attempt_id`,
  );
  const { rows: replays } = await queries.query<ReplayColumns>(
    `select event_id, replayed_at, replayed_by from notification_replays where call_id = $1 order by replay_id`,
    [callId],
  );
  return sent.map((notification) => {
    const belongs = (row: { readonly event_id: string }) => row.event_id === notification.event_id;
    return {
      ...toView(notification, identityOf(call), waiting[0]?.next_attempt_at),
      attempts: attempts.filter(belongs).map(attemptOf),
      replays: replays
        .filter(belongs)
        .map((row) => ({ replayedAt: row.replayed_at.toISOString(), by: row.replayed_by })),
    };
  });
}

type NotificationColumns = EventColumns & {
  readonly event_id: string;
  readonly sequence: number;
  // The notifier is the only writer, so the type is safe.
  readonly state: NotificationView['state'];
  readonly created_at: Date;
  readonly delivered_at: Date | null;
  readonly failed_at: Date | null;
  readonly failure: NonNullable<NotificationView['failure']> | null;
};

function toView(
  row: NotificationColumns,
  call: CallIdentity,
  nextAttemptAt: Date | undefined,
): Omit<NotificationView, 'attempts' | 'replays'> {
  return {
    eventId: row.event_id,
    sequence: row.sequence,
    state: row.state,
    createdAt: row.created_at.toISOString(),
    ...(row.delivered_at === null ? {} : { deliveredAt: row.delivered_at.toISOString() }),
    ...(row.failed_at === null ? {} : { failedAt: row.failed_at.toISOString() }),
    ...(row.failure === null ? {} : { failure: row.failure }),
    ...(row.state !== 'pending' || nextAttemptAt === undefined
      ? {}
      : { nextAttemptAt: nextAttemptAt.toISOString() }),
    body: notificationOf(toCallEvent(call, row)),
  };
}

type AttemptColumns = {
  readonly event_id: string;
  readonly attempt: number;
  readonly started_at: Date;
  readonly duration_ms: number;
  /** Null if no response arrived. */
  readonly response_status: number | null;
  readonly error: string | null;
  readonly delivered: boolean;
};

function attemptOf(row: AttemptColumns): NotificationView['attempts'][number] {
  return {
    attempt: row.attempt,
    startedAt: row.started_at.toISOString(),
    durationMs: row.duration_ms,
    ...(row.response_status === null ? {} : { responseStatus: row.response_status }),
    ...(row.error === null ? {} : { error: row.error }),
    delivered: row.delivered,
  };
}

type ReplayColumns = {
  readonly event_id: string;
  readonly replayed_at: Date;
  /** The id of an app. */
  readonly replayed_by: string;
};
