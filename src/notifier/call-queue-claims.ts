// Leases calls' notification queues from the database and renews the leases.

import type { CallQueue } from './call-queue.ts';
import type { LeasedCallQueue } from './call-queue-loading.ts';
import type { NotificationStore } from './notification-store.ts';
import type { Rooms } from './origin-gates.ts';
import type { Recipient, RecipientLookup } from './recipients.ts';

type Deps = {
  readonly store: NotificationStore;
  readonly recipients: RecipientLookup;
  readonly now: () => Date;
};

export type ClaimRequest = {
  /** Ids of calls to lease if due. These calls don't count towards `limit`. */
  readonly wanted: readonly string[];
  /** Maximum number of other due calls. With 0, only `wanted` calls are leased. */
  readonly limit: number;
  /** When the new leases run out. */
  readonly until: Date;
  readonly rooms: Rooms;
};

export type Claimed = {
  readonly queues: readonly {
    readonly leased: LeasedCallQueue;
    readonly recipient: Recipient | undefined;
  }[];
  /** True if the database may contain more due calls. */
  readonly more: boolean;
};

export async function claimCallQueues(
  { store, now, recipients }: Deps,
  { wanted, limit, until, rooms }: ClaimRequest,
): Promise<Claimed> {
  const named = wanted.length === 0 ? [] : await store.claimThese(now(), until, wanted);
  const due =
    limit <= 0 ? { calls: [], chosen: 0 } : await store.claimDue(now(), until, limit, rooms);
  const more = limit > 0 && due.chosen >= limit;
  const calls = [...named, ...due.calls];
  if (calls.length === 0) return { queues: [], more };
  const callIds = calls.map(({ callId }) => callId);
  const [queues, targets] = await Promise.all([store.load(calls), recipients(callIds)]);
  return {
    queues: [...queues.values()].map((leased) => ({
      leased,
      recipient: targets.get(leased.callId),
    })),
    more,
  };
}

/**
 * Renews the leases. A queue becomes stale, and will be read again, if this process has lost its
 * lease or if a notification has been added.
 */
export async function renewCallQueues(
  store: Pick<NotificationStore, 'renew'>,
  queues: readonly CallQueue[],
  until: Date,
): Promise<void> {
  if (queues.length === 0) return;
  const renewed = await store.renew(queues, until);
  for (const queue of queues) {
    if (renewed.has(queue.callId)) queue.leasedUntil = until.getTime();
    else queue.isStale = true;
  }
}
