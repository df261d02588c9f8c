// One call's queue in memory, while this process holds its lease.

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
  /** The receiver as a whole failed: nothing is sent before. */
  heldUntil?: number;
  /** The receiver said 410: nothing of this call is sent any more. */
  goneAt?: number;
  /** The queue may have changed in the database: read it again before the next step. */
  isStale: boolean;
  /** Settles when the attempts so far are stored; the queue is let go after that. */
  recorded?: Promise<unknown>;
  /** Set while the queue is empty and about to be let go: something was added, or it is stale. */
  onMore?: () => void;
  /** Made anew in the database while this one was being let go. */
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

/** What was read again from the database stands; what waited as a successor is in it. */
export function refreshCallQueue(queue: CallQueue, leased: LeasedCallQueue): void {
  queue.leasedUntil = leased.leasedUntil;
  // Held back by a refusal: the exact time, with its jitter, is only known here.
  const known = new Map(queue.pending.map((pending) => [pending.eventId, pending.dueAt]));
  queue.pending = leased.pending.map((pending) => {
    const dueAt = known.get(pending.eventId) ?? pending.dueAt;
    return dueAt === undefined ? pending : { ...pending, dueAt };
  });
  // What came meanwhile is stopped with the rest.
  if (queue.goneAt !== undefined) queue.pending = [];
  queue.isStale = false;
  delete queue.successor;
}

/**
 * Takes what was added in the database into the queue, without a look there. False: it is not known whether there is more.
 * What adds something moves `leased_until` by a millisecond, so the next value says that nothing came between.
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

/** What is in memory may not be all: it is read again before the next step. */
export function markStale(queue: CallQueue): void {
  queue.isStale = true;
  queue.onMore?.();
}

/** The receiver said 410: what is pending is not sent. */
export function markGone(queue: CallQueue, at: number): void {
  queue.goneAt ??= at;
  queue.pending = [];
}

/** Takes the outcome of an attempt into the queue. */
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

/** `change` left out: it is no longer owed. */
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

/** Of notifications that were just stored. */
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
