// Sweeps: what is looked after again and again, because no message tells of it for certain. Lost nodes, calls that no process dials, ends that are owed, what is old.

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

/** Also how long room that another node made on a trunk may go unnoticed. */
const takeEveryMs = 1_000;
const settleEveryMs = 30_000;
/** The start does not wait longer for NATS to take what is owed; the sweep goes on with it. */
const startSettleTimeoutMs = 5_000;
/** A steady node (`src/store/nodes.ts`) notices a lost one within this part of the lease. */
const watchesInLease = 8;
const sweepsBetweenLooks = 10;
const purgeEveryMs = 3_600_000;

export type Sweeps = {
  /** A call that waits was stored. */
  readonly waitingCalls: Pick<Repetition, 'wake'>;
  stop(): Promise<unknown>;
};

/** Ends what a lost process left, before new calls are taken; then all the rest. */
export async function startSweeps(environment: Environment, parts: SweepParts): Promise<Sweeps> {
  const { config, logger } = environment;
  const { recovery, taking, storage } = parts;
  await parts.node.store.takeOverLeft();
  const left = await endLostProcesses(recovery, logger);
  await recovery.settleEnds(AbortSignal.timeout(startSettleTimeoutMs));
  const { longestRestMs } = storage;
  const waitingCalls = repeat(
    { name: 'waiting calls', everyMs: takeEveryMs, longestRestMs, logger },
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
 * `left`: calls of lost nodes that could not be ended yet; `isAlone`: there are no others, and those before this process were
 * marked lost when it started.
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
    // They are told of once: until their calls are ended, every sweep tries.
    leftOver = Math.max(leftOver, lost.length);
    sweeps += 1;
    // Once in a while all the same: a process that was lost may have taken a call in its last moment.
    const isDue = !isAlone && sweeps % sweepsBetweenLooks === 0;
    if (leftOver === 0 && !isDue) return;
    if (isDue) await node.store.takeOverLeft();
    const stillLeft = await endLostProcesses(recovery, logger);
    await notifier.takeOver();
    leftOver = stillLeft;
    // Not waited for: the next lost node must not wait for NATS.
    recovery
      .settleEnds()
      .catch((error: unknown) => logger.warn({ err: error }, 'ends of lost nodes are still owed'));
  };
}

/** SQL must say of every such call how it ended. How many could not be ended. */
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
