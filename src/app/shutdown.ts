// How a process ends, and how long each step may take, whatever clients, receivers, bots and
// servers do. sip-config/README.md says the same to operators ("Stopping").
//
// | step     | at most             | what happens                                               |
// |----------|---------------------|------------------------------------------------------------|
// | delay    | SHUTDOWN_DELAY_MS   | /ready says no, other nodes are told (0.5 s at most)       |
// | drain    | SHUTDOWN_TIMEOUT_MS | calls go on; dial-outs get a 503, other requests answers   |
// | hang up  | 1.5 s (drain.ts)    | calls that are left are hung up, and their ends stored     |
// | settle   | 2 s with "hang up"  | what is owed leaves, BYEs are answered                     |
// | close    | 2.5 s, and what the | each part in turn, 1 s at most (lib/closers.ts); HTTP cuts |
// |          | two before left     | its clients off after 0.5 s (http/closing.ts)              |
// | exit     | 0.5 s               | threads end with the process                               |
//
// The last four take 5 s together, from the end of the drain: "settle" leaves 2.5 s for "close".
// Of those, 1 s is reserved for the database and 0.5 s for the embedded nats-server, which close
// last. 0.25 s before the end main.ts ends a process that is still there, and names what has not
// closed. A second signal ends delay and drain at once; the last four steps stay as they are.

import type { Closers } from '../lib/closers.ts';
import { within } from '../lib/within.ts';
import type { Calls } from './calls.ts';
import type { Node } from './nodes.ts';

export type ShutdownOptions = {
  readonly delayMs?: number;
  readonly drainMs?: number;
  /** Ends delay and drain. */
  readonly force?: AbortSignal;
};

/** From the end of the drain to the end of the process. */
const closingMs = 5_000;
/** If the database does not answer, the others learn it from the lease. */
const tellOthersTimeoutMs = 500;
/**
 * What the parts have in any case. "Settle" ends before: a receiver that is slow does not hold a
 * shutdown up, because the next process owes it.
 */
const partsMs = 2_500;
/** The process itself ends, with its threads. */
const exitMs = 500;

/** Node ends a longer timer at once. */
const longestTimerMs = 2 ** 31 - 1;

/** From the signal to the moment in which a process that has not ended is ended. */
export function lastBoundMs({ delayMs = 0, drainMs = 0 }: ShutdownOptions = {}): number {
  return Math.min(delayMs + drainMs + closingMs - exitMs / 2, longestTimerMs);
}

export type Ending = {
  readonly node: Pick<Node, 'drain'>;
  readonly calls: Pick<Calls, 'drain' | 'settle'>;
  readonly closers: Pick<Closers, 'closeAll'>;
};

/** The names of the parts that did not close in time. */
export async function shutDown(
  { node, calls, closers }: Ending,
  { delayMs = 0, drainMs = 0, force = AbortSignal.abort() }: ShutdownOptions = {},
): Promise<readonly string[]> {
  const nowMs = (): number => performance.now();
  let drainEndsMs = nowMs() + delayMs + drainMs;
  const endDrain = (): void => {
    drainEndsMs = Math.min(drainEndsMs, nowMs());
  };
  if (force.aborted) endDrain();
  else force.addEventListener('abort', endDrain, { once: true });

  // A load balancer has seen /ready by then, and no request that comes through it is refused.
  const othersAreTold = within(node.drain(), tellOthersTimeoutMs);
  await within(new Promise(() => undefined), delayMs, force);
  await othersAreTold;
  await calls.drain(Math.max(0, drainEndsMs - nowMs()), force);
  endDrain();
  const closeEndsMs = drainEndsMs + closingMs - exitMs;
  // What the last calls owe leaves before the process does, where the receiver takes it.
  const settleMs = Math.max(0, closeEndsMs - partsMs - nowMs());
  await within(calls.settle(settleMs), settleMs).catch(() => undefined);
  return await closers.closeAll(closeEndsMs - nowMs());
}
