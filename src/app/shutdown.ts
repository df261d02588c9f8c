// Ends the process in steps. Each step has a time limit, which does not depend on what clients,
// receivers, bots and servers do. sip-config/README.md ("Stopping") explains the steps to
// operators.
//
// | step     | at most             | what happens                                                |
// |----------|---------------------|-------------------------------------------------------------|
// | delay    | SHUTDOWN_DELAY_MS   | /ready answers 503; the node is stored as draining, so that |
// |          |                     | other nodes see it (at most 0.5 s)                          |
// | drain    | SHUTDOWN_TIMEOUT_MS | calls continue; dial-outs get a 503; other requests work    |
// | hang up  | 1.5 s (drain.ts)    | remaining calls are hung up and their ends are stored       |
// | settle   | 2 s with "hang up"  | owed notifications and events are sent, BYEs are answered   |
// | close    | 2.5 s, plus time    | each part closes in turn, in at most 1 s (lib/closers.ts);  |
// |          | left over from the  | HTTP disconnects its clients after 0.5 s (http/closing.ts)  |
// |          | two steps above     |                                                             |
// | exit     | 0.5 s               | threads end with the process                                |
//
// The last four steps together take at most 5 s from the end of the drain: "settle" leaves 2.5 s
// for "close". This includes 1 s reserved for the database and 0.5 s for the embedded nats-server,
// which close late. If the process is still there 0.25 s before the end of "exit", main.ts ends it
// and logs the parts that have not closed. A second signal ends delay and drain immediately, and
// does not change the last four steps.

import type { Closers } from '../lib/closers.ts';
import { within } from '../lib/within.ts';
import type { Calls } from './calls.ts';
import type { Node } from './nodes.ts';

export type ShutdownOptions = {
  readonly delayMs?: number;
  readonly drainMs?: number;
  /** Ends delay and drain when it aborts. Default: already aborted. */
  readonly force?: AbortSignal;
};

/** Time from the end of the drain to the end of the process. */
const closingMs = 5_000;
/**
 * Bounds the wait until this node is stored as draining. If the database does not answer, the other
 * nodes notice when the lease runs out.
 */
const markDrainingTimeoutMs = 500;
/**
 * Minimum time for "close". "Settle" ends early enough to leave it. A slow receiver does not delay
 * the shutdown, because the next process sends the notifications that are still owed.
 */
const partsMs = 2_500;
/** Time that the process and its threads need to exit. */
const exitMs = 500;

/** The longest timer of Node. A longer one fires immediately. */
const longestTimerMs = 2 ** 31 - 1;

/** Returns the time from the signal until main.ts must end a process that is still running. */
export function shutdownLimitMs({ delayMs = 0, drainMs = 0 }: ShutdownOptions = {}): number {
  return Math.min(delayMs + drainMs + closingMs - exitMs / 2, longestTimerMs);
}

export type ShutdownParts = {
  readonly node: Pick<Node, 'drain'>;
  readonly calls: Pick<Calls, 'drain' | 'settle'>;
  readonly closers: Pick<Closers, 'closeAll'>;
};

/**
 * Shuts the process down in the steps above.
 * @returns the names of the parts that did not close in time
 */
export async function shutDown(
  { node, calls, closers }: ShutdownParts,
  { delayMs = 0, drainMs = 0, force = AbortSignal.abort() }: ShutdownOptions = {},
): Promise<readonly string[]> {
  const nowMs = (): number => performance.now();
  let drainEndsMs = nowMs() + delayMs + drainMs;
  const endDrain = (): void => {
    drainEndsMs = Math.min(drainEndsMs, nowMs());
  };
  if (force.aborted) endDrain();
  else force.addEventListener('abort', endDrain, { once: true });

  // During the delay, load balancers notice that /ready fails and stop sending requests, which we
  // would refuse after it.
  const drainingIsStored = within(node.drain(), markDrainingTimeoutMs);
  await within(new Promise(() => undefined), delayMs, force);
  await drainingIsStored;
  await calls.drain(Math.max(0, drainEndsMs - nowMs()), force);
  endDrain();
  const closeEndsMs = drainEndsMs + closingMs - exitMs;
  // The notifications of the last calls are sent before the process ends, if their receivers
  // answer.
  const settleMs = Math.max(0, closeEndsMs - partsMs - nowMs());
  await within(calls.settle(settleMs), settleMs).catch(() => undefined);
  return await closers.closeAll(closeEndsMs - nowMs());
}
