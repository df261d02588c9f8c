// One call's queue in memory, while this process holds its lease.

import type { OwedNotification } from '../store/outbox/call-appends.ts';
import type { Delivery } from './delivery.ts';
import type { LaneStep, PendingNotification } from './delivery-plan.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { LeasedLane } from './lane-loading.ts';
import type { Settlement } from './notification-store.ts';
import type { Recipient } from './recipients.ts';

export type Lane = {
  readonly callId: string;
  readonly recipient: Recipient | undefined;
  readonly origin: string;
  leasedUntil: number;
  pending: readonly PendingNotification[];
  /** The receiver as a whole failed: nothing is sent before. */
  heldUntil?: number;
  /** The receiver said 410: nothing of this call is sent any more. */
  goneAt?: number;
  /** The lane may have changed in the database: read it again before the next step. */
  isStale: boolean;
  /** Made anew in the database while this one was being let go. */
  successor?: LeasedLane;
};

export function newLane(
  leased: LeasedLane,
  recipient: Recipient | undefined,
  origin: string,
): Lane {
  return {
    callId: leased.callId,
    recipient,
    origin,
    leasedUntil: leased.leasedUntil,
    pending: [...leased.pending].sort((a, b) => a.sequence - b.sequence),
    isStale: false,
  };
}

export function endpointOf({ recipient, origin }: Lane): Endpoint | undefined {
  if (recipient === undefined) return undefined;
  const { appId, accountId } = recipient;
  return { appId, accountId, origin };
}

/** What was read again from the database stands; what waited as a successor is in it. */
export function refreshLane(lane: Lane, leased: LeasedLane): void {
  lane.leasedUntil = leased.leasedUntil;
  // Held back by a refusal: the exact time, with its jitter, is only known here.
  const known = new Map(lane.pending.map((pending) => [pending.eventId, pending.dueAt]));
  lane.pending = leased.pending.map((pending) => {
    const dueAt = known.get(pending.eventId) ?? pending.dueAt;
    return dueAt === undefined ? pending : { ...pending, dueAt };
  });
  // What came meanwhile is stopped with the rest.
  if (lane.goneAt !== undefined) lane.pending = [];
  lane.isStale = false;
  delete lane.successor;
}

/** Takes the outcome of an attempt into the queue. */
export function recordInLane(lane: Lane, eventId: string, { verdict, record }: Delivery): void {
  if (verdict.kind === 'failed' && verdict.failure === 'gone') {
    lane.goneAt = record.at.getTime();
    lane.pending = [];
    return;
  }
  if (verdict.kind !== 'retry') {
    updatePending(lane, eventId, undefined);
    return;
  }
  const isReceiverFault = verdict.fault === 'receiver';
  if (isReceiverFault) lane.heldUntil = verdict.at;
  updatePending(lane, eventId, (pending) => ({
    ...pending,
    attempts: record.attempt,
    ...(isReceiverFault
      ? {}
      : { dueAt: verdict.at, refusedAt: pending.refusedAt ?? record.at.getTime() }),
  }));
}

export function settlementOf(next: LaneStep): Settlement['lane'] {
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
  lane: Lane,
  eventId: string,
  change: ((pending: PendingNotification) => PendingNotification) | undefined,
): void {
  lane.pending = lane.pending.flatMap((pending) => {
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
