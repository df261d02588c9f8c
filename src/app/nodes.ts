// This process among the others: its lease, and what it does about those that lost theirs.

import { Lease } from '../recovery/lease.ts';
import { createNodeStore, type NodeStore } from '../store/nodes.ts';
import { version } from '../version.ts';
import type { Environment } from './environment.ts';
import type { Storage } from './storage.ts';

export type Node = {
  readonly store: NodeStore;
  readonly lease: Lease;
  /** What the others see of this one. */
  report(state: { readonly calls: () => number }): void;
  drain(): Promise<void>;
  isDraining(): boolean;
  /** Everything is up, and where it listens can be read. */
  markStarted(): void;
  isStarted(): boolean;
  /** Called once, when another process has taken over. */
  onLost(handler: () => void): void;
};

/**
 * Of a process that has the database alone: no other could take over from it, so that renewing only tells `nodes` that it
 * is up.
 */
const leaseAloneMs = 60_000;

/** Before anything that a call could be placed with: a process that claims a call has a lease. */
export async function openNode(
  { config, logger, closers }: Environment,
  storage: Storage,
): Promise<Node> {
  const isAlone = config.databaseUrl === undefined;
  const leaseMs = isAlone ? Math.max(config.leaseMs, leaseAloneMs) : config.leaseMs;
  const store = createNodeStore(storage.database, config.ownerId, leaseMs);
  let calls = (): number => 0;
  let draining = false;
  let started = false;
  let isLost = false;
  let onLost = (): void => undefined;
  const nowMs = (): number => performance.now();
  const lease = new Lease(
    {
      renew: (how) => store.renew({ calls: calls(), draining }, how),
      nowMs,
      onLost: () => {
        isLost = true;
        onLost();
      },
      logger,
    },
    leaseMs,
  );
  const askedAtMs = nowMs();
  await store.register({ nodeId: config.nodeId, version });
  lease.start(askedAtMs);
  closers.add('lease', async () => {
    lease.stop();
    await store.leave();
  });
  // No other process can have the embedded database: what is left there is of processes that are gone.
  if (isAlone) await store.expireOthers({ evenIfRunning: true });
  return {
    store,
    lease,
    report: (state) => {
      calls = state.calls;
    },
    drain: () => {
      draining = true;
      return lease.renewNow();
    },
    isDraining: () => draining,
    markStarted: () => {
      started = true;
    },
    isStarted: () => started,
    onLost: (handler) => {
      onLost = handler;
      // While the rest was opened: a start may wait for longer than a lease.
      if (isLost) handler();
    },
  };
}
