// Manages this process's role as a node: its registration, its lease, and the state that it reports
// to other nodes and to /ready.

import { type Answerer, createAnswerer, newQuestionKey } from '../recovery/alive-question.ts';
import { Lease } from '../recovery/lease.ts';
import { announceKeys, followRollout } from '../store/key-rollout.ts';
import { createNodeStore, type NodeStore } from '../store/nodes.ts';
import { version } from '../version.ts';
import type { Environment } from './environment.ts';
import type { Storage } from './storage.ts';

export type Node = {
  readonly store: NodeStore;
  readonly lease: Lease;
  /** Sets the function that counts this node's calls. Other nodes see 0 until then. */
  report(state: { readonly calls: () => number }): void;
  /** Answers other nodes' questions whether this process is alive. */
  readonly answer: Answerer;
  /** Marks this node as draining, and renews the lease immediately, which also stores the mark. */
  drain(): Promise<void>;
  isDraining(): boolean;
  /** Marks this node as started. Call it when all parts are up and runtime.json is written. */
  markStarted(): void;
  isStarted(): boolean;
  /**
   * Sets the handler to call when this node has lost its lease for good, so that another process
   * takes over from it. Calls it immediately if that has already happened.
   */
  onLost(handler: () => void): void;
};

/**
 * Minimum lease for a process that has the database to itself. No other process can take over from
 * it, so the only purpose of its renewals is to show in the `nodes` table that it's up.
 */
const leaseAloneMs = 60_000;

/**
 * Registers this node and starts renewing its lease. Call it before opening any part that can place
 * a call, because a process must have a lease before it can claim one.
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
  const questionKey = newQuestionKey();
  await store.register({ nodeId: config.nodeId, version, questionKey });
  lease.start(askedAtMs);
  await announceKeys(storage.database.pool, config.ownerId, storage.secrets);
  if (storage.secrets.headers.previous !== undefined) {
    const rollout = followRollout(storage.database.pool, config.ownerId, storage.secrets, logger);
    closers.add('key change', () => rollout.stop());
  }
  closers.add('lease', async () => {
    lease.stop();
    await store.leave();
  });
  // Nobody else can have the embedded database open, so all other nodes in it must be gone.
  if (isAlone) await store.expireOthers('everyone');
  const giveUp = (): boolean => {
    const isGivenUp = lease.yield();
    if (isGivenUp) logger.warn('this node could not renew its lease for too long');
    return isGivenUp;
  };
  return {
    store,
    lease,
    answer: createAnswerer({ ownerId: config.ownerId, questionKey }, giveUp),
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
      // A start can take longer than a lease, so we may already have lost ours.
      if (isLost) handler();
    },
  };
}
