// `CallQueries` on SQL, with the context bucket in front for calls that are up.

import { and, asc, desc, eq, inArray, sql } from 'drizzle-orm';
import type { CallContext } from '../calls/contract/call-context.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import type { Database } from '../store/database.ts';
import {
  callEvents,
  calls,
  deliveryAttempts,
  notificationReplays,
  notifications,
} from '../store/schema.ts';
import type {
  AppScope,
  CallDetails,
  CallQueries,
  CallScope,
  NotificationView,
  TimelineEntry,
} from './call-queries.ts';
import { type Db, inScope, listCalls, summaryColumns, toSummary } from './call-summaries.ts';
import { type ContextStore, contextKey } from './context-store.ts';
import { queuePosition } from './queue-position.ts';

export function createCallQueries(
  { db }: Pick<Database, 'db'>,
  contexts: ContextStore,
): CallQueries {
  return {
    list: (scope, filter) => listCalls(db, scope, filter),
    details: (scope, callId) => details(db, scope, callId),
    context: (scope, callId) => context(db, contexts, scope, callId),
    notifications: (scope, callId) => notificationsOf(db, scope, callId),
  };
}

// ── One call ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function details(
  db: Db,
  scope: CallScope | AppScope,
  callId: string,
): Promise<CallDetails | undefined> {
  const [row] = await db
    .select({
      ...summaryColumns,
      queuePosition,
      metadata: sql<Readonly<Record<string, unknown>>>`${calls.request}->'metadata'`,
      answeredEvent: calls.answeredEvent,
      endEvent: calls.endEvent,
    })
    .from(calls)
    .where(and(inScope(scope), eq(calls.callId, callId)));
  if (row === undefined) return undefined;
  const stored = await storedTimeline(db, callId);
  // What SQL was told first is on the timeline even while its fact is on the way through the stream.
  const known = [row.answeredEvent, row.endEvent].flatMap((fact) =>
    fact === null ? [] : [entryOf(fact)],
  );
  const missing = known.filter((fact) => !stored.some((entry) => entry.eventId === fact.eventId));
  return {
    ...toSummary(row),
    ...(row.queuePosition === null ? {} : { queuePosition: row.queuePosition }),
    metadata: row.metadata,
    timeline: [...stored, ...missing].sort((a, b) => a.eventSequence - b.eventSequence),
  };
}

async function storedTimeline(db: Db, callId: string): Promise<readonly TimelineEntry[]> {
  const rows = await db
    .select()
    .from(callEvents)
    .where(eq(callEvents.callId, callId))
    .orderBy(asc(callEvents.eventSequence));
  return rows.map(({ eventId, eventSequence, type, time, data }) => ({
    eventId,
    eventSequence,
    type,
    time: time.toISOString(),
    data: data,
  }));
}

function entryOf(fact: CallEvent): TimelineEntry {
  const { id, eventSequence, type, time, data } = fact;
  return { eventId: id, eventSequence, type, time, data };
}

async function context(
  db: Db,
  contexts: ContextStore,
  scope: CallScope,
  callId: string,
): Promise<CallContext | undefined> {
  // SQL first: the bucket's keys do not say whose a call is.
  const [row] = await db
    .select({
      metadata: sql<Readonly<Record<string, unknown>>>`${calls.request}->'metadata'`,
      final: sql<CallContext | null>`${calls.endEvent}->'data'->'context'`,
      answered: sql<CallContext | null>`${calls.answeredEvent}->'data'->'context'`,
    })
    .from(calls)
    .where(and(inScope(scope), eq(calls.callId, callId)));
  if (row === undefined) return undefined;
  if (row.final !== null) return row.final;
  const current = await contexts
    .get(contextKey({ botId: scope.botId, callId }))
    // Without the bucket there is still what the facts said.
    .catch(() => undefined);
  return (
    current ??
    (await lastTold(db, callId)) ??
    row.answered ?? {
      session: { UserSession: { amd: [], amdInfo: {} } },
      metadata: row.metadata,
    }
  );
}

async function lastTold(db: Db, callId: string): Promise<CallContext | undefined> {
  const [row] = await db
    .select({ context: sql<CallContext>`${callEvents.data}->'context'` })
    .from(callEvents)
    .where(and(eq(callEvents.callId, callId), inArray(callEvents.type, ['answered', 'amd'])))
    .orderBy(desc(callEvents.eventSequence))
    .limit(1);
  return row?.context;
}

// ── Notifications ────────────────────────────────────────────────────────────────────────────────────────────────────

async function notificationsOf(
  db: Db,
  scope: CallScope,
  callId: string,
): Promise<readonly NotificationView[] | undefined> {
  const [call] = await db
    .select({ callId: calls.callId })
    .from(calls)
    .where(and(inScope(scope), eq(calls.callId, callId)));
  if (call === undefined) return undefined;
  const sent = await db
    .select()
    .from(notifications)
    .where(eq(notifications.callId, callId))
    .orderBy(asc(notifications.sequence));
  const attempts = await db
    .select()
    .from(deliveryAttempts)
    .where(eq(deliveryAttempts.callId, callId))
    .orderBy(asc(deliveryAttempts.attemptId));
  const replays = await db
    .select()
    .from(notificationReplays)
    .where(eq(notificationReplays.callId, callId))
    .orderBy(asc(notificationReplays.replayId));
  return sent.map((notification) => ({
    ...toView(
      notification,
      attempts.filter((attempt) => attempt.eventId === notification.eventId),
    ),
    replays: replays
      .filter((replay) => replay.eventId === notification.eventId)
      .map(({ replayedAt, replayedBy: by }) => ({ replayedAt: replayedAt.toISOString(), by })),
  }));
}

function toView(
  notification: typeof notifications.$inferSelect,
  attempts: readonly (typeof deliveryAttempts.$inferSelect)[],
): Omit<NotificationView, 'replays'> {
  const { eventId, sequence, state, createdAt, deliveredAt, failedAt, failure, body } =
    notification;
  return {
    eventId,
    sequence,
    // Written by the notifier, in these words.
    state: state as NotificationView['state'],
    createdAt: createdAt.toISOString(),
    ...(deliveredAt === null ? {} : { deliveredAt: deliveredAt.toISOString() }),
    ...(failedAt === null ? {} : { failedAt: failedAt.toISOString() }),
    ...(failure === null ? {} : { failure: failure as NonNullable<NotificationView['failure']> }),
    body: JSON.parse(body) as unknown,
    attempts: attempts.map(
      ({ attempt, startedAt, durationMs, responseStatus, error, delivered }) => ({
        attempt,
        startedAt: startedAt.toISOString(),
        durationMs,
        ...(responseStatus === null ? {} : { responseStatus }),
        ...(error === null ? {} : { error }),
        delivered,
      }),
    ),
  };
}
