// Taking lanes from the database, and giving back what became of them.

import { setTimeout as pause } from 'node:timers/promises';
import type { Lane } from './lane.ts';
import type { LeasedLane } from './lane-loading.ts';
import type { NotificationStore, Settlement } from './notification-store.ts';
import type { Rooms } from './origin-gates.ts';
import type { Recipient, RecipientLookup } from './recipients.ts';

type Deps = {
  readonly store: NotificationStore;
  readonly recipients: RecipientLookup;
  readonly now: () => Date;
};

export type ClaimRequest = {
  /** Calls to look for by name. */
  readonly wanted: readonly string[];
  /** Of what is due; 0: nothing else is looked for. */
  readonly limit: number;
  readonly until: Date;
  readonly rooms: Rooms;
};

export type Claimed = {
  readonly lanes: readonly {
    readonly leased: LeasedLane;
    readonly recipient: Recipient | undefined;
  }[];
  /** There may be more that is due. */
  readonly more: boolean;
};

export async function claimLanes(
  { store, now, recipients }: Deps,
  { wanted, limit, until, rooms }: ClaimRequest,
): Promise<Claimed> {
  const callIds = [
    ...(wanted.length === 0 ? [] : await store.claimThese(now(), until, wanted)),
    ...(limit <= 0 ? [] : await store.claimDue(now(), until, limit, rooms)),
  ];
  if (callIds.length === 0) return { lanes: [], more: false };
  const [lanes, targets] = await Promise.all([store.load(callIds), recipients(callIds)]);
  return {
    lanes: [...lanes.values()].map((leased) => ({
      leased,
      recipient: targets.get(leased.callId),
    })),
    more: limit > 0 && callIds.length >= limit,
  };
}

/** The database did not take the outcome of an attempt: the lane is left to its lease. */
const settleRetries = 3;
const settleRetryMs = 500;

/** True: the lane was let go. */
export async function settleWithRetries(
  store: Pick<NotificationStore, 'settle'>,
  settlement: Settlement,
): Promise<boolean> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await store.settle(settlement);
    } catch (error) {
      if (failures > settleRetries) throw error;
      await pause(settleRetryMs);
    }
  }
}

/** A lane whose lease is not ours any more, or that was added to, is to be read again. */
export async function renewLanes(
  store: Pick<NotificationStore, 'renew'>,
  lanes: readonly Lane[],
  until: Date,
): Promise<void> {
  if (lanes.length === 0) return;
  const renewed = await store.renew(lanes, until);
  for (const lane of lanes) {
    if (renewed.has(lane.callId)) lane.leasedUntil = until.getTime();
    else lane.isStale = true;
  }
}
