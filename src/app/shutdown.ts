// How a process ends. Whatever its clients, its receivers, bots and servers do, it has ended this long after the signal:
//
// | step | at most | what happens |
// |---|---|---|
// | delay | SHUTDOWN_DELAY_MS | /ready says no; requests are taken as ever, and the other nodes are told |
// | drain | SHUTDOWN_TIMEOUT_MS | calls go on; dial-out requests are refused (503), everything else is answered, with `Connection: close` |
// | hang up | 1.5 s | what is left is hung up, and its end stored |
// | settle | 3 s, and 2 s with "hang up" | notifications and events that are owed leave, BYEs are answered |
// | close | 2.5 s, and what the two steps above have left of 4.5 s | each part in turn, 1 s at most. HTTP clients: 0.5 s, then their connections are cut. Of the time, 1.5 s are kept for the embedded nats-server and database, which close last |
// | last bound | 0.25 s before the end | main.ts ends the process, and names what has not closed |
// | end | 5 s after the drain | |
//
// A drain that is over earlier shortens the whole. A second signal ends delay and drain at once: the process has ended 5 s after it.

import { atMost } from '../lib/at-most.ts';
import type { Closers } from '../lib/closers.ts';
import { deadline } from '../lib/deadline.ts';
import { untilAborted } from '../lib/until-aborted.ts';
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
/** That others are told is no reason to let a person wait: where the database does not answer, they learn it from the lease. */
const tellOthersTimeoutMs = 500;
/** A receiver that is slow does not hold a shutdown up: the next process owes it. */
const settleTimeoutMs = 3_000;
/** What the parts have in any case. */
const partsMs = 2_500;
/** The process itself ends, with its threads. */
const exitMs = 500;

/** From the signal to the moment in which a process that has not ended is ended. */
export function lastBoundMs({ delayMs = 0, drainMs = 0 }: ShutdownOptions = {}): number {
  return delayMs + drainMs + closingMs - exitMs / 2;
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
  using delay = deadline(delayMs, force);
  const othersAreTold = atMost(node.drain(), tellOthersTimeoutMs);
  await untilAborted(new Promise(() => undefined), delay.signal);
  await othersAreTold;
  await calls.drain(Math.max(0, drainEndsMs - nowMs()), force);
  endDrain();
  const closeEndsMs = drainEndsMs + closingMs - exitMs;
  // What the last calls owe leaves before the process does, where the receiver takes it.
  const settleMs = Math.min(settleTimeoutMs, Math.max(0, closeEndsMs - partsMs - nowMs()));
  await atMost(calls.settle(settleMs), settleMs).catch(() => undefined);
  return await closers.closeAll(closeEndsMs - nowMs());
}
