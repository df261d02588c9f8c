// This process as a node: its registration, its lease, and the state that other nodes and /ready
// see.

import { Lease } from '../recovery/lease.ts';
import { createNodeStore, type NodeStore } from '../store/nodes.ts';
import { version } from '../version.ts';
import type { Environment } from './environment.ts';
import type { Storage } from './storage.ts';

export type Node = {
  readonly store: NodeStore;
  readonly lease: Lease;
  /** Sets the source of the number of calls that other nodes see. Until then, they see 0. */
  report(state: { readonly calls: () => number }): void;
  /**
   * Marks this node as draining. The next renewal of the lease, which this call triggers, stores
   * the mark.
   */
  drain(): Promise<void>;
  isDraining(): boolean;
  /** Marks this node as started: all parts are up, and runtime.json is written. */
  markStarted(): void;
  isStarted(): boolean;
  /**
   * Sets the handler to call when another process has taken over from this node. Calls it
   * immediately if that has already happened.
   */
  onLost(handler: () => void): void;
};

/**
 * Minimum lease of a process that has the database to itself. No other process can take over from
 * it, so its renewals only show in the table `nodes` that it is up.
 */
const leaseAloneMs = 60_000;

/**
 * Registers this node and starts renewing its lease. It must run before any part that can place a
 * call, because a process that claims a call must have a lease.
 */
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
  // No other process can have the embedded database open, so all other nodes in it are gone.
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
      // The lease may have been lost before the handler was set, because a start can take longer
      // than a lease.
      if (isLost) handler();
    },
  };
}
