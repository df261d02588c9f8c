// Ends the process in steps. Each step has a time limit that no client, receiver, bot or server can
// extend. "Stopping" in sip-config/README.md explains the steps to operators.
//
// | step     | at most             | what happens                                                |
// |----------|---------------------|-------------------------------------------------------------|
// | delay    | SHUTDOWN_DELAY_MS   | /ready returns 503; the node is stored as draining, so that |
// |          |                     | other nodes can see it (at most 0.5 s)                      |
// | drain    | SHUTDOWN_TIMEOUT_MS | calls continue; dial-outs return 503; other requests work   |
// | hang up  | 1.5 s (drain.ts)    | remaining calls are hung up and their ends are stored       |
// | settle   | 2 s with "hang up"  | pending notifications and events are sent, BYEs answered    |
// | close    | 2.5 s, plus time    | each part closes in turn, in at most 1 s (lib/closers.ts);  |
// |          | left over from the  | HTTP disconnects its clients after 0.5 s (http/closing.ts)  |
// |          | two steps above     |                                                             |
// | exit     | 0.5 s               | threads end with the process                                |
//
// The last four steps together take at most 5 s from the end of the drain, because "settle" leaves
// 2.5 s for "close". This includes 1 s reserved for the database and 0.5 s for the embedded
// nats-server, which both close late. If the process is still running 0.25 s before the end of
// "exit", main.ts ends it and logs the parts that haven't closed. A second signal ends delay and
// drain immediately but doesn't change the last four steps.

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

/** Time between the end of the drain and the end of the process. */
const closingMs = 5_000;
/**
 * How long we wait until this node has been stored as draining. If the database doesn't respond,
 * the other nodes will notice when the lease expires.
 */
const markDrainingTimeoutMs = 500;
/**
 * "Settle" has to leave at least this much time for "close". We don't wait any longer for slow
 * receivers, because the next process will send the remaining notifications.
 */
const partsMs = 2_500;
/** Time for the process and its threads to exit. */
const exitMs = 500;

/** Node timers with a longer delay fire immediately. */
const maxTimerMs = 2 ** 31 - 1;

/** If the process is still running this long after the signal, main.ts must kill it. */
export function shutdownLimitMs({ delayMs = 0, drainMs = 0 }: ShutdownOptions = {}): number {
  return Math.min(delayMs + drainMs + closingMs - exitMs / 2, maxTimerMs);
}

export type ShutdownParts = {
  readonly node: Pick<Node, 'drain'>;
  readonly calls: Pick<Calls, 'drain' | 'settle'>;
  readonly closers: Pick<Closers, 'closeAll'>;
};

/**
 * Shuts down the process in the steps above.
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

  // The delay gives load balancers time to notice that /ready fails. After the delay, we reject
  // dial-outs.
  const drainingIsStored = within(node.drain(), markDrainingTimeoutMs);
  await within(new Promise(() => undefined), delayMs, force);
  await drainingIsStored;
  await calls.drain(Math.max(0, drainEndsMs - nowMs()), force);
  endDrain();
  const closeEndsMs = drainEndsMs + closingMs - exitMs;
  // If the receivers respond, this is when the last calls' notifications go out.
  const settleMs = Math.max(0, closeEndsMs - partsMs - nowMs());
  await within(calls.settle(settleMs), settleMs).catch(() => undefined);
  return await closers.closeAll(closeEndsMs - nowMs());
}
