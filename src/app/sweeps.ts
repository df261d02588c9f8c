// Starts the sweeps, i.e. repeated queries for work that we can't rely on messages to report. They
// find lost nodes, queued calls that nobody is dialling, ended calls that haven't been settled yet
// (because some of their events are unpublished or a leg is still up), and old data.

import type { CallTaking } from '../dialout/call-taking.ts';
import { leaseTimes } from '../lib/lease-times.ts';
import type { Logger } from '../lib/logger.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import { repeatHourly } from '../lib/repeat-hourly.ts';
import type { LateNodes } from '../recovery/late-nodes.ts';
import type { Recovery } from '../recovery/recovery.ts';
import { makeDays } from '../store/days.ts';
import type { NodeStore } from '../store/nodes.ts';
import { purgeRecords } from '../store/retention.ts';
import type { Environment } from './environment.ts';
import type { Notifier } from './notifier.ts';
import type { Storage } from './storage.ts';

export type SweepParts = {
  readonly storage: Storage;
  readonly nodes: NodeStore;
  readonly lateNodes: Pick<LateNodes, 'expire'>;
  readonly notifier: Notifier;
  readonly recovery: Recovery;
  readonly taking: CallTaking;
};

/** This is also how late this node may notice that another node has released a slot on a trunk. */
const takeEveryMs = 1_000;
const settleEveryMs = 30_000;
/**
 * How long the start waits for NATS to accept the events of ended calls. After that, the sweep
 * publishes the rest.
 */
const startSettleTimeoutMs = 5_000;
/** Every tenth sweep looks for lost nodes' calls even if it hasn't found any newly lost node. */
const sweepsBetweenLooks = 10;

export type Sweeps = {
  /** The sweep for queued calls. Wake it after storing one. */
  readonly waitingCalls: Pick<Repetition, 'wake'>;
  stop(): Promise<unknown>;
};

/**
 * Ends the calls that lost processes left behind, then starts all sweeps. Call this before taking
 * any new calls.
 */
export async function startSweeps(environment: Environment, parts: SweepParts): Promise<Sweeps> {
  const { config, logger } = environment;
  const { recovery, taking, storage } = parts;
  await parts.nodes.takeOverLeft();
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
      { name: 'nodes', everyMs: leaseTimes(config.leaseMs).lookEveryMs, logger },
      watchNodes(parts, { left, isAlone: config.databaseUrl === undefined }, logger),
    ),
    repeatHourly({ name: 'purge', clock: environment.clock, logger }, (stopped) =>
      purge(environment, parts, stopped),
    ),
  ];
  return { waitingCalls, stop: () => Promise.all(sweeps.map((sweep) => sweep.stop())) };
}

/**
 * Returns the sweep that finds lost nodes and ends their calls. `left` is the number of calls that
 * we haven't been able to end yet. If `isAlone` is set, there can't be any other nodes, because
 * this process marked its predecessors as lost when it started.
 */
function watchNodes(
  { nodes, lateNodes, recovery, notifier }: SweepParts,
  { left, isAlone }: { readonly left: number; readonly isAlone: boolean },
  logger: Logger,
): () => Promise<void> {
  let leftOver = left;
  let sweeps = 0;
  return async () => {
    const lost = isAlone ? [] : await lateNodes.expire();
    if (lost.length > 0)
      logger.warn({ nodes: lost }, 'nodes lost their lease and do not answer; taking over');
    // A lost node is reported only once, so we retry in every sweep until all its calls have ended.
    leftOver = Math.max(leftOver, lost.length);
    sweeps += 1;
    // A lost process may have claimed a call at the last moment, so we look every now and then even
    // without a newly lost node.
    const isDue = !isAlone && sweeps % sweepsBetweenLooks === 0;
    if (leftOver === 0 && !isDue) return;
    if (isDue) await nodes.takeOverLeft();
    const stillLeft = await endLostProcesses(recovery, logger);
    await notifier.takeOver();
    leftOver = stillLeft;
    // Don't await this, because settling may have to wait for NATS, and the next sweep must find
    // lost nodes in time.
    recovery
      .settleEnds()
      .catch((error: unknown) =>
        logger.warn({ err: error }, 'ended calls of lost nodes are not settled yet'),
      );
  };
}

/**
 * Ends the calls that this process took over from lost processes, and stores how each of them
 * ended.
 * @returns the number of calls that we couldn't end
 */
async function endLostProcesses(recovery: Recovery, logger: Logger): Promise<number> {
  const { ended, failed } = await recovery.endTakenOver();
  if (ended > 0) logger.warn({ calls: ended }, 'ended the calls of a lost process');
  return failed;
}

async function purge(
  { config, clock, logger }: Environment,
  { storage: { database, ledger }, nodes }: SweepParts,
  stopped: AbortSignal,
): Promise<void> {
  const { eventDays, recordDays } = config.retention;
  const daysAgo = (days: number) => new Date(clock.now().getTime() - days * 86_400_000);
  await makeDays(database.pool, logger, clock.now());
  await nodes.forgetLost();
  await ledger.purge(daysAgo(eventDays), stopped);
  await purgeRecords(database, daysAgo(recordDays), stopped);
}
