// Sweeps: repeated queries for work that no message reports reliably. They find lost nodes, queued
// calls that no process dials, ended calls that are not settled, and old data.

import type { CallTaking } from '../dialout/call-taking.ts';
import type { Logger } from '../lib/logger.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import type { Recovery } from '../recovery/recovery.ts';
import { makeDays } from '../store/days.ts';
import type { Environment } from './environment.ts';
import type { Node } from './nodes.ts';
import type { Notifier } from './notifier.ts';
import type { Storage } from './storage.ts';

export type SweepParts = {
  readonly storage: Storage;
  readonly node: Node;
  readonly notifier: Notifier;
  readonly recovery: Recovery;
  readonly taking: CallTaking;
};

/** If another node frees a slot on a trunk, this node may also notice it this late. */
const takeEveryMs = 1_000;
const settleEveryMs = 30_000;
/**
 * Bounds how long the start waits for NATS to accept the events of ended calls. The sweep settles
 * the rest.
 */
const startSettleTimeoutMs = 5_000;
/** A steady node (`src/store/nodes.ts`) looks for lost nodes this many times per lease. */
const watchesInLease = 8;
/**
 * Every tenth sweep looks for the calls of lost nodes even if no node was lost since the previous
 * look.
 */
const sweepsBetweenLooks = 10;
const purgeEveryMs = 3_600_000;

export type Sweeps = {
  /** The sweep for queued calls. Wake it after storing a queued call. */
  readonly waitingCalls: Pick<Repetition, 'wake'>;
  stop(): Promise<unknown>;
};

/**
 * Ends the calls that lost processes left, before this process takes new calls, and then starts all
 * sweeps.
 */
export async function startSweeps(environment: Environment, parts: SweepParts): Promise<Sweeps> {
  const { config, logger } = environment;
  const { recovery, taking, storage } = parts;
  await parts.node.store.takeOverLeft();
  const left = await endLostProcesses(recovery, logger);
  await recovery.settleEnds(AbortSignal.timeout(startSettleTimeoutMs));
  const { maxRestMs } = storage;
  const waitingCalls = repeat(
    { name: 'waiting calls', everyMs: takeEveryMs, maxRestMs, logger },
    () => taking.sweep(),
  );
  const sweeps = [
    waitingCalls,
    repeat({ name: 'owed ends', everyMs: settleEveryMs, logger }, (stopped) =>
      recovery.settleEnds(stopped),
    ),
    repeat(
      { name: 'nodes', everyMs: config.leaseMs / watchesInLease, logger },
      watchNodes(parts, { left, isAlone: config.databaseUrl === undefined }, logger),
    ),
    repeat({ name: 'purge', everyMs: purgeEveryMs, logger }, (stopped) =>
      purge(environment, parts, stopped),
    ),
  ];
  return { waitingCalls, stop: () => Promise.all(sweeps.map((sweep) => sweep.stop())) };
}

/**
 * Returns the sweep that finds lost nodes and ends their calls. `left` is the number of their calls
 * that could not be ended yet. `isAlone` means that no other node can exist, because this process
 * marked its predecessors lost when it started.
 */
function watchNodes(
  { node, recovery, notifier }: SweepParts,
  { left, isAlone }: { readonly left: number; readonly isAlone: boolean },
  logger: Logger,
): () => Promise<void> {
  let leftOver = left;
  let sweeps = 0;
  return async () => {
    const lost = isAlone ? [] : await node.store.expireOthers();
    if (lost.length > 0) logger.warn({ nodes: lost }, 'nodes lost their lease; taking over');
    // A lost node is reported only once, so every sweep tries again until all its calls are ended.
    leftOver = Math.max(leftOver, lost.length);
    sweeps += 1;
    // Some sweeps look although no node was lost: a lost process may have taken a call in its last
    // moment.
    const isDue = !isAlone && sweeps % sweepsBetweenLooks === 0;
    if (leftOver === 0 && !isDue) return;
    if (isDue) await node.store.takeOverLeft();
    const stillLeft = await endLostProcesses(recovery, logger);
    await notifier.takeOver();
    leftOver = stillLeft;
    // Settling may wait for NATS. The sweep does not wait for that, so that it finds the next lost
    // node in time.
    recovery
      .settleEnds()
      .catch((error: unknown) =>
        logger.warn({ err: error }, 'ended calls of lost nodes are not settled yet'),
      );
  };
}

/**
 * Ends the calls that this process took over from lost processes, and stores how each call ended.
 * Returns the number of calls that could not be ended.
 */
async function endLostProcesses(recovery: Recovery, logger: Logger): Promise<number> {
  const { ended, failed } = await recovery.endTakenOver();
  if (ended > 0) logger.warn({ calls: ended }, 'ended the calls of a lost process');
  return failed;
}

async function purge(
  { config, clock, logger }: Environment,
  { storage: { database, ledger }, node }: SweepParts,
  stopped: AbortSignal,
): Promise<void> {
  const dayMs = 86_400_000;
  await makeDays(database.pool, logger, clock.now());
  await node.store.forgetLost();
  await ledger.purge(new Date(clock.now().getTime() - config.retention.eventDays * dayMs), stopped);
}
