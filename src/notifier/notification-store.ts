// Stores which notifications are pending, which process is sending them and how attempts ended.
// Each call has one queue, and the process that has leased the queue sends the call's notifications
// one by one.

import { Batcher } from '../lib/batcher.ts';
import { byDay, type CallOfDay, type Day } from '../store/days.ts';
import { retryConflicts } from '../store/sql-errors.ts';
import { type LeasedCallQueue, loadCallQueues } from './call-queue-loading.ts';
import type { Failure, RetrySchedule } from './delivery-rules.ts';
import {
  claimStatement,
  claimTheseStatement,
  holdsStatement,
  owesStatement,
  releaseLostStatement,
  releaseOwnStatement,
  renewStatement,
  settleStatement,
} from './notification-sql.ts';
import type { Rooms } from './origin-gates.ts';
import type { SqlClient } from './sql-client.ts';

export type AttemptRecord = {
  readonly eventId: string;
  readonly callId: string;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly responseStatus?: number;
  readonly error?: string;
  readonly state: 'pending' | 'delivered' | 'failed';
  readonly failure?: Failure;
  readonly at: Date;
  readonly refused: boolean;
};

export type Settlement = CallOfDay & {
  readonly leasedUntil: number;
  readonly attempt?: AttemptRecord;
  /**
   * When the receiver responded with 410. All the call's pending notifications become dead letters.
   */
  readonly goneAt?: number;
  /** `keep` the lease, release it until the next attempt is due, or delete the empty queue. */
  readonly queue: 'keep' | 'finish' | { readonly until: number };
};

export type Claimed = {
  /** Calls that are now leased to this process. */
  readonly calls: readonly CallOfDay[];
  /**
   * Counts the calls that were due and had room, including any that another process claimed first.
   */
  readonly chosen: number;
};

export type NotificationStore = ReturnType<typeof createNotificationStore>;

/**
 * A settlement is an attempt's result plus the queue's next state. One statement stores up to
 * `maxBatch` settlements. Any more wait for the next statement, and beyond `maxWaiting` we
 * reject them. After a pause, attempts arrive a few promises earlier than the releases of the
 * attempts' queues, and `wholeTurns` puts attempts and releases into one statement.
 */
const settleBatch = {
  ...{ maxBatch: 500, maxWaiting: 50_000, concurrency: 1 },
  wholeTurns: true,
} as const;

/**
 * Batches the queues to read again. A thousand queues may be waiting at a time if their leases were
 * renewed while the queues were being released.
 */
const loadBatch = { maxBatch: 200, maxWaiting: 50_000, concurrency: 1 } as const;

export function createNotificationStore(sql: SqlClient, ownerId: string, schedule: RetrySchedule) {
  const settling = new Batcher<Settlement, boolean>(
    (items) => settleAll(sql, ownerId, items),
    settleBatch,
  );
  const load = (calls: readonly CallOfDay[]) => loadCallQueues(sql, ownerId, schedule, calls);
  const loading = new Batcher<CallOfDay, LeasedCallQueue | undefined>(async (calls) => {
    const queues = await load(calls);
    return calls.map(({ callId }) => queues.get(callId));
  }, loadBatch);
  return {
    /** Leases as many due calls as each receiver and account has room for. */
    claimDue: (now: Date, leasedUntil: Date, limit: number, rooms: Rooms): Promise<Claimed> =>
      claimDue(sql, [ownerId, leasedUntil, now, limit, ...roomParameters(rooms)]),
    claimThese: (now: Date, leasedUntil: Date, callIds: readonly string[]) =>
      claimThese(sql, [ownerId, leasedUntil, now, callIds]),
    /**
     * Reads the queues' pending notifications. Skips queues that aren't leased to this process.
     */
    load,
    /**
     * Reads one call's pending notifications.
     *
     * @returns undefined if the queue isn't leased to this process
     */
    loadOne: (call: CallOfDay) => loading.add(call),
    /**
     * @returns false if the queue was kept or has changed, or if this process has lost its lease
     */
    settle: (settlement: Settlement): Promise<boolean> => settling.add(settlement),
    /** @returns the ids of the calls whose lease has been renewed */
    renew: async (
      queues: readonly { readonly callId: string; readonly leasedUntil: number }[],
      leasedUntil: Date,
    ): Promise<ReadonlySet<string>> => {
      const known = JSON.stringify(
        queues.map((queue) => ({ call_id: queue.callId, until: iso(queue.leasedUntil) })),
      );
      const result = await sql.query<{ call_id: string }>({
        ...renewStatement,
        values: [known, ownerId, leasedUntil],
      });
      return new Set(result.rows.map((row) => row.call_id));
    },
    /** Releases lost processes' queues and returns how many queues there were. */
    releaseLost: async (): Promise<number> => {
      const result = await sql.query({ ...releaseLostStatement, values: [] });
      return result.rowCount ?? 0;
    },
    /**
     * True if this process is sending a notification or about to send one. Queues that are waiting
     * for a retry don't count, because they aren't leased.
     */
    holdsLeases: async (): Promise<boolean> => {
      const result = await sql.query<{ holds: boolean }>({ ...holdsStatement, values: [ownerId] });
      return result.rows[0]?.holds === true;
    },
    /** True if a notification to any receiver is pending, whether it is due or not. */
    owesAnything: async (): Promise<boolean> => {
      const result = await sql.query<{ owes: boolean }>({ ...owesStatement, values: [] });
      return result.rows[0]?.owes === true;
    },
    releaseOwn: async (): Promise<void> => {
      await sql.query({ ...releaseOwnStatement, values: [ownerId] });
    },
  };
}

async function claimDue(sql: SqlClient, values: unknown[]): Promise<Claimed> {
  const { rows } = await sql.query<Claimed>({ ...claimStatement, values });
  return rows[0] ?? { calls: [], chosen: 0 };
}

async function claimThese(sql: SqlClient, values: unknown[]): Promise<readonly CallOfDay[]> {
  return (await sql.query<CallOfDay>({ ...claimTheseStatement, values })).rows;
}

function roomParameters({ byReceiver, byAccount, unlistedAccounts }: Rooms): readonly unknown[] {
  return [
    byReceiver.map(({ accountId }) => accountId),
    byReceiver.map(({ origin }) => origin),
    byReceiver.map(({ room }) => room),
    byAccount.map(({ accountId }) => accountId),
    byAccount.map(({ room }) => room),
    byAccount.map(({ byNewReceiver }) => byNewReceiver),
    unlistedAccounts.room,
    unlistedAccounts.byNewReceiver,
  ];
}

async function settleAll(
  sql: SqlClient,
  ownerId: string,
  items: readonly Settlement[],
): Promise<readonly boolean[]> {
  const released = new Set<string>();
  for (const [day, ofDay] of byDay(items)) {
    for (const callId of await settleDay(sql, ownerId, day, ofDay)) released.add(callId);
  }
  return items.map((item) => released.has(item.callId));
}

/** @returns the ids of the calls whose queue has been released */
async function settleDay(
  sql: SqlClient,
  ownerId: string,
  day: Day,
  items: readonly Settlement[],
): Promise<readonly string[]> {
  const attempts = items.flatMap((item) => item.attempt ?? []);
  const queues = items.flatMap((item) =>
    item.queue === 'keep'
      ? []
      : {
          call_id: item.callId,
          known: iso(item.leasedUntil),
          gone_at: item.goneAt === undefined ? undefined : iso(item.goneAt),
          next: item.queue === 'finish' ? undefined : iso(item.queue.until),
        },
  );
  const values = [JSON.stringify(attempts.map(attemptColumns)), JSON.stringify(queues), ownerId];
  const result = await retryConflicts(() =>
    sql.query<{ call_id: string }>({ ...settleStatement(day), values }),
  );
  return result.rows.map((row) => row.call_id);
}

function attemptColumns(record: AttemptRecord) {
  const { eventId, callId, startedAt, durationMs, responseStatus, ...others } = record;
  return {
    ...others,
    event_id: eventId,
    call_id: callId,
    started_at: startedAt,
    duration_ms: durationMs,
    response_status: responseStatus,
  };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
