// Reads pending notifications for calls whose queue this process leases.

import { notificationOf } from '../calls/contract/event-table.ts';
import {
  type EventColumns,
  type IdentityColumns,
  identityOf,
  toCallEvent,
} from '../store/calls/call-rows.ts';
import { byDay, type CallOfDay, type Day } from '../store/days.ts';
import { type PendingNotification, type RetrySchedule, refusedDueAt } from './delivery-rules.ts';
import { loadStatement } from './notification-sql.ts';
import type { SqlClient } from './sql-client.ts';

export type LeasedCallQueue = CallOfDay & {
  readonly leasedUntil: number;
  readonly pending: readonly PendingNotification[];
  /**
   * True if the receiver had already responded with 410 when these notifications were stored, and
   * none of them has been replayed. In that case, we must not send any of them.
   */
  readonly isGone?: boolean;
};

type LoadedRow = { readonly call_id: string; readonly leased_until: Date } & (
  | { readonly event_id: null }
  | (EventColumns &
      IdentityColumns & {
        readonly event_id: string;
        readonly sequence: number;
        readonly attempts: number;
        readonly attempts_before: number;
        readonly created_at: Date;
        readonly owed_since: Date | null;
        readonly refused_at: Date | null;
        readonly last_attempt_at: Date | null;
        readonly is_gone: boolean | null;
      })
);

type LoadedCallQueue = LeasedCallQueue & {
  readonly pending: PendingNotification[];
  isGone: boolean;
};

/**
 * Reads the calls' pending notifications. Skips calls whose queue isn't leased to `ownerId`.
 */
export async function loadCallQueues(
  sql: SqlClient,
  ownerId: string,
  schedule: RetrySchedule,
  calls: readonly CallOfDay[],
): Promise<ReadonlyMap<string, LeasedCallQueue>> {
  const queues = new Map<string, LeasedCallQueue>();
  for (const [day, ofDay] of byDay(calls)) {
    const callIds = ofDay.map(({ callId }) => callId);
    const { rows } = await sql.query<LoadedRow>({
      ...loadStatement(day),
      values: [callIds, ownerId],
    });
    for (const queue of queuesOf(day, rows, schedule)) queues.set(queue.callId, queue);
  }
  return queues;
}

function queuesOf(
  day: Day,
  rows: readonly LoadedRow[],
  schedule: RetrySchedule,
): Iterable<LeasedCallQueue> {
  const queues = new Map<string, LoadedCallQueue>();
  for (const row of rows) {
    const queue = queues.get(row.call_id) ?? {
      ...{ callId: row.call_id, day },
      leasedUntil: row.leased_until.getTime(),
      pending: [],
      isGone: row.event_id !== null,
    };
    queues.set(row.call_id, queue);
    if (row.event_id === null) continue;
    // We do send a replayed notification, and all notifications that follow.
    if (row.is_gone !== true) queue.isGone = false;
    queue.pending.push(pendingOf(row, schedule));
  }
  return queues.values();
}

function pendingOf(
  row: Exclude<LoadedRow, { readonly event_id: null }>,
  schedule: RetrySchedule,
): PendingNotification {
  const { refused_at: refusedAt, last_attempt_at: lastAttemptAt } = row;
  const attempts = row.attempts - row.attempts_before;
  return {
    eventId: row.event_id,
    appId: row.app_id,
    sequence: row.sequence,
    body: JSON.stringify(notificationOf(toCallEvent(identityOf(row), row))),
    attempts: row.attempts,
    attemptsBefore: row.attempts_before,
    owedSince: (row.owed_since ?? row.created_at).getTime(),
    ...(refusedAt === null ? {} : { refusedAt: refusedAt.getTime() }),
    ...(lastAttemptAt === null
      ? {}
      : { dueAt: refusedDueAt(lastAttemptAt.getTime(), attempts, schedule) }),
  };
}
