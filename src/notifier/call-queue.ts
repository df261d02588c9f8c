// A call's notification queue, which is in memory while this process has the lease. Only the owner
// of the lease may send the call's notifications.

import type { CallOfDay } from '../store/days.ts';
import type { OwedNotification } from '../store/outbox/call-appends.ts';
import type { LeasedCallQueue } from './call-queue-loading.ts';
import type { Delivery } from './delivery.ts';
import type { CallQueueStep, PendingNotification } from './delivery-rules.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { Settlement } from './notification-store.ts';
import { originOf, type Receiver } from './origin-gates.ts';
import type { Recipient } from './recipients.ts';

export type CallQueue = CallOfDay & {
  readonly recipient: Recipient | undefined;
  readonly receiver: Receiver;
  leasedUntil: number;
  pending: readonly PendingNotification[];
  /** No attempt may start before this time, because the receiver failed or had no free place. */
  heldUntil?: number;
  /** When the receiver responded with 410. We stop sending the call's notifications after that. */
  goneAt?: number;
  /** True if the queue may have changed in the database. We then read it before the next step. */
  isStale: boolean;
  /** Settles once all attempts so far have been stored. Don't release the queue before that. */
  recorded?: Promise<unknown>;
  /**
   * Called when a notification is added or the queue becomes stale. Set only while the queue is
   * empty and about to be released.
   */
  onMore?: () => void;
  /** The call's next queue, if the database created it while this one was being released. */
  successor?: LeasedCallQueue;
};

export function newCallQueue(leased: LeasedCallQueue, recipient: Recipient | undefined): CallQueue {
  const { accountId = '', notifyUrl } = recipient ?? {};
  return {
    ...{ callId: leased.callId, day: leased.day },
    recipient,
    receiver: { accountId, origin: originOf(notifyUrl) },
    leasedUntil: leased.leasedUntil,
    pending: [...leased.pending].sort((a, b) => a.sequence - b.sequence),
    isStale: false,
  };
}

export function endpointOf({ recipient, receiver }: CallQueue): Endpoint | undefined {
  return recipient === undefined ? undefined : { appId: recipient.appId, ...receiver };
}

/** Replaces the queue's contents with those in the database, including any successor's. */
export function refreshCallQueue(queue: CallQueue, leased: LeasedCallQueue): void {
  queue.leasedUntil = leased.leasedUntil;
  // Keep the due times of rejected notifications, because their jitter isn't in the database.
  const known = new Map(queue.pending.map((pending) => [pending.eventId, pending.dueAt]));
  queue.pending = leased.pending.map((pending) => {
    const dueAt = known.get(pending.eventId) ?? pending.dueAt;
    return dueAt === undefined ? pending : { ...pending, dueAt };
  });
  // We don't send notifications that have been added since the 410 response, either.
  if (queue.goneAt !== undefined) queue.pending = [];
  queue.isStale = false;
  delete queue.successor;
}

/**
 * Appends notifications that have just been stored, without reading the database. This works
 * because each statement that adds notifications moves `leased_until` by 1 ms. If the new value is
 * exactly 1 ms after the previous value, no other statement ran in between.
 *
 * @returns false if the queue may contain notifications that this process doesn't know about
 */
export function extendCallQueue(
  queue: CallQueue,
  added: readonly PendingNotification[],
  leasedUntil: number,
): boolean {
  const isNext = leasedUntil === queue.leasedUntil + 1;
  if (!isNext || queue.isStale || queue.goneAt !== undefined || queue.successor !== undefined) {
    return false;
  }
  queue.leasedUntil = leasedUntil;
  queue.pending = [...queue.pending, ...added];
  queue.onMore?.();
  return true;
}

/** Forces us to read the queue from the database before its next step. */
export function markStale(queue: CallQueue): void {
  queue.isStale = true;
  queue.onMore?.();
}

/** Drops all pending notifications after the receiver has responded with 410. */
export function markGone(queue: CallQueue, at: number): void {
  queue.goneAt ??= at;
  queue.pending = [];
}

/** Applies the outcome of an attempt to the queue. */
export function recordInCallQueue(
  queue: CallQueue,
  eventId: string,
  { verdict, record }: Delivery,
): void {
  if (verdict.kind === 'failed' && verdict.failure === 'gone') {
    markGone(queue, record.at.getTime());
    return;
  }
  if (verdict.kind !== 'retry') {
    updatePending(queue, eventId, undefined);
    return;
  }
  const isReceiverFault = verdict.fault === 'receiver';
  if (isReceiverFault) queue.heldUntil = verdict.at;
  updatePending(queue, eventId, (pending) => ({
    ...pending,
    attempts: record.attempt,
    ...(isReceiverFault
      ? {}
      : { dueAt: verdict.at, refusedAt: pending.refusedAt ?? record.at.getTime() }),
  }));
}

export function settlementOf(next: CallQueueStep): Settlement['queue'] {
  switch (next.kind) {
    case 'send':
      return 'keep';
    case 'wait':
      return { until: next.until };
    case 'finish':
      return 'finish';
  }
}

/** Updates a pending notification, or removes it if `change` is undefined. */
function updatePending(
  queue: CallQueue,
  eventId: string,
  change: ((pending: PendingNotification) => PendingNotification) | undefined,
): void {
  queue.pending = queue.pending.flatMap((pending) => {
    if (pending.eventId !== eventId) return pending;
    return change === undefined ? [] : change(pending);
  });
}

/** Returns queue entries for notifications that have just been stored. */
export function pendingOf(
  owed: readonly OwedNotification[],
  storedAt: Date,
): readonly PendingNotification[] {
  return owed.map(({ eventId, appId, sequence, body }) => ({
    ...{ eventId, appId, sequence, body },
    attempts: 0,
    attemptsBefore: 0,
    owedSince: storedAt.getTime(),
  }));
}
