// The notifier's SQL: what is owed, who works on it, what became of it. A lane is one call's queue; whoever holds its
// lease sends its notifications, one after the other.

import { Batcher } from '../lib/batcher.ts';
import type { PendingNotification, RetrySchedule } from './delivery-plan.ts';
import { refusedDueAt } from './delivery-plan.ts';
import {
  acceptStatement,
  claimStatement,
  claimTheseStatement,
  holdsStatement,
  loadStatement,
  releaseLostStatement,
  releaseOwnStatement,
  renewStatement,
  settleStatement,
} from './notification-sql.ts';

export type SqlClient = {
  query<Row extends object>(statement: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
  }): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
};

export type NewNotification = {
  readonly eventId: string;
  readonly callId: string;
  readonly appId: string;
  readonly sequence: number;
  readonly body: string;
  readonly createdAt: Date;
  /** Lease a lane that is made for it to the owner. */
  readonly lease: boolean;
};

export type AcceptedLane = {
  readonly callId: string;
  /** The lane is new: what it holds is what was just added. Else somebody may be at work on it. */
  readonly isNew: boolean;
  /** Notifications of the call that were stored before. */
  readonly knownBefore: number;
};

export type LeasedLane = {
  readonly callId: string;
  readonly leasedUntil: number;
  readonly pending: readonly PendingNotification[];
};

export type AttemptRecord = {
  readonly eventId: string;
  readonly callId: string;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly responseStatus?: number;
  readonly error?: string;
  readonly state: 'pending' | 'delivered' | 'failed';
  readonly at: Date;
  readonly refused: boolean;
};

export type Settlement = {
  readonly callId: string;
  readonly leasedUntil: number;
  readonly attempt?: AttemptRecord;
  /** Keep the lane, let it go until a time, or remove it because nothing is pending. */
  readonly lane: 'keep' | 'finish' | { readonly until: number };
};

export type NotificationStore = ReturnType<typeof createNotificationStore>;

/** One statement carries this many attempts; more wait for the next, and beyond the second bound are rejected. */
const settleBatch = { maxBatch: 500, maxWaiting: 50_000, concurrency: 1 } as const;

export function createNotificationStore(sql: SqlClient, ownerId: string, schedule: RetrySchedule) {
  const settling = new Batcher<Settlement, boolean>(
    (items) => settleAll(sql, ownerId, items),
    settleBatch,
  );
  return {
    /** New rows and their lanes, in one statement; a notification that is known is passed over. */
    accept: async (
      rows: readonly NewNotification[],
      now: Date,
      leasedUntil: Date,
    ): Promise<readonly AcceptedLane[]> => {
      const passedBefore = new Date(now.getTime() - schedule.passRefusedAfterMs);
      const values = [acceptParameter(rows), now, ownerId, leasedUntil, passedBefore];
      const result = await retryConflicts(() =>
        sql.query<{ call_id: string; is_new: boolean; known_before: number }>({
          ...acceptStatement,
          values,
        }),
      );
      return result.rows.map((row) => ({
        callId: row.call_id,
        isNew: row.is_new,
        knownBefore: row.known_before,
      }));
    },
    claimDue: (now: Date, leasedUntil: Date, limit: number, exceptOrigins: readonly string[]) =>
      claim(sql, claimStatement, [ownerId, leasedUntil, now, limit, exceptOrigins]),
    claimThese: (now: Date, leasedUntil: Date, callIds: readonly string[]) =>
      claim(sql, claimTheseStatement, [ownerId, leasedUntil, now, callIds]),
    /** What is pending of lanes that are leased to us; a lane that is not is absent. */
    load: (callIds: readonly string[]) => load(sql, ownerId, schedule, callIds),
    /** False: the lane was not let go, because it has changed or is no longer ours. */
    settle: (settlement: Settlement): Promise<boolean> => settling.add(settlement),
    /** Calls whose lease was prolonged. */
    renew: async (
      lanes: readonly { readonly callId: string; readonly leasedUntil: number }[],
      leasedUntil: Date,
    ): Promise<ReadonlySet<string>> => {
      const known = JSON.stringify(
        lanes.map((lane) => ({ call_id: lane.callId, until: iso(lane.leasedUntil) })),
      );
      const result = await sql.query<{ call_id: string }>({
        ...renewStatement,
        values: [known, ownerId, leasedUntil],
      });
      return new Set(result.rows.map((row) => row.call_id));
    },
    /** Gives back what processes held that are lost: they will not send it. */
    releaseLost: async (): Promise<number> => {
      const result = await sql.query({ ...releaseLostStatement, values: [] });
      return result.rowCount ?? 0;
    },
    /** Something is being sent, or about to be: a call that waits for a retry has no lease. */
    holdsLeases: async (): Promise<boolean> => {
      const result = await sql.query<{ holds: boolean }>({ ...holdsStatement, values: [ownerId] });
      return result.rows[0]?.holds === true;
    },
    releaseOwn: async (): Promise<void> => {
      await sql.query({ ...releaseOwnStatement, values: [ownerId] });
    },
  };
}

function acceptParameter(rows: readonly NewNotification[]): string {
  return JSON.stringify(
    rows.map((row) => ({
      event_id: row.eventId,
      call_id: row.callId,
      app_id: row.appId,
      sequence: row.sequence,
      body: row.body,
      created_at: row.createdAt,
      lease: row.lease,
    })),
  );
}

async function claim(
  sql: SqlClient,
  statement: { readonly name: string; readonly text: string },
  values: unknown[],
): Promise<readonly string[]> {
  const result = await sql.query<{ call_id: string }>({ ...statement, values });
  return result.rows.map((row) => row.call_id);
}

type LoadedRow = { readonly call_id: string; readonly leased_until: Date } & (
  | { readonly event_id: null }
  | {
      readonly event_id: string;
      readonly app_id: string;
      readonly sequence: number;
      readonly body: string;
      readonly attempts: number;
      readonly created_at: Date;
      readonly refused_at: Date | null;
      readonly last_attempt_at: Date | null;
      readonly has_gap: boolean;
    }
);

async function load(
  sql: SqlClient,
  ownerId: string,
  schedule: RetrySchedule,
  callIds: readonly string[],
): Promise<ReadonlyMap<string, LeasedLane>> {
  const result = await sql.query<LoadedRow>({ ...loadStatement, values: [callIds, ownerId] });
  const lanes = new Map<string, LeasedLane & { readonly pending: PendingNotification[] }>();
  for (const row of result.rows) {
    const lane = lanes.get(row.call_id) ?? {
      callId: row.call_id,
      leasedUntil: row.leased_until.getTime(),
      pending: [],
    };
    lanes.set(row.call_id, lane);
    if (row.event_id === null) continue;
    lane.pending.push({
      eventId: row.event_id,
      appId: row.app_id,
      sequence: row.sequence,
      body: row.body,
      attempts: row.attempts,
      createdAt: row.created_at.getTime(),
      ...(row.refused_at === null ? {} : { refusedAt: row.refused_at.getTime() }),
      ...(row.last_attempt_at === null
        ? {}
        : { dueAt: refusedDueAt(row.last_attempt_at.getTime(), row.attempts, schedule) }),
      ...(row.has_gap ? { waitsUntil: row.created_at.getTime() + schedule.gapPatienceMs } : {}),
    });
  }
  return lanes;
}

async function settleAll(
  sql: SqlClient,
  ownerId: string,
  items: readonly Settlement[],
): Promise<readonly boolean[]> {
  const attempts = items.flatMap((item) => item.attempt ?? []);
  const lanes = items.flatMap((item) =>
    item.lane === 'keep'
      ? []
      : {
          call_id: item.callId,
          known: iso(item.leasedUntil),
          next: item.lane === 'finish' ? undefined : iso(item.lane.until),
        },
  );
  const values = [JSON.stringify(attempts.map(attemptColumns)), JSON.stringify(lanes), ownerId];
  const result = await retryConflicts(() =>
    sql.query<{ call_id: string }>({ ...settleStatement, values }),
  );
  const letGo = new Set(result.rows.map((row) => row.call_id));
  return items.map((item) => letGo.has(item.callId));
}

function attemptColumns(attempt: AttemptRecord) {
  return {
    event_id: attempt.eventId,
    call_id: attempt.callId,
    attempt: attempt.attempt,
    started_at: attempt.startedAt,
    duration_ms: attempt.durationMs,
    response_status: attempt.responseStatus,
    error: attempt.error,
    state: attempt.state,
    at: attempt.at,
    refused: attempt.refused,
  };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

/** Deadlock or serialization failure: the statement did nothing, and may be tried again. */
const conflictRetries = 3;

async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      if (attempt > conflictRetries || !code.startsWith('40')) throw error;
    }
  }
}
