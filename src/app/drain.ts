// Ends the calls of a process that shuts down: stops taking calls, lets the current calls continue
// for a while, and then hangs up the rest.

import type { CallRegistry } from '../calls/life/call-registry.ts';
import { type Bound, within } from '../lib/within.ts';

/**
 * Bounds the wait for the calls to end after they were hung up. Hanging up, `amd_stopped` and
 * storing the end take much less. Slower calls continue to end while the process settles.
 */
const endAllTimeoutMs = 1_500;

export type Drain = {
  /**
   * Stops taking calls, and ends the current calls after `drainMs`, or as soon as `force` aborts.
   * Resolves when all calls have ended, or when the time for hanging up has passed. Calling it
   * again returns the same promise.
   */
  readonly drain: (drainMs: number, force: AbortSignal) => Promise<void>;
  readonly isDraining: () => boolean;
};

/**
 * `stopTaking` must stop taking calls immediately. It resolves when the takes under way have
 * returned their calls, which can take long if the database does not answer.
 */
export function createDrain(
  registry: Pick<CallRegistry, 'empty' | 'endAll'>,
  stopTaking: () => Promise<void>,
): Drain {
  let drained: Promise<void> | undefined;
  const endAll = (): void => registry.endAll({ by: 'gateway', reason: 'Gateway shut down' });
  const drainNow: Drain['drain'] = async (drainMs, force) => {
    const stopped = stopTaking();
    const untilEmpty = (...bounds: readonly Bound[]) =>
      within(
        stopped.then(() => registry.empty(...bounds)),
        ...bounds,
      );
    await untilEmpty(drainMs, force);
    endAll();
    // A call that was being taken may still start, now or when the database answers again. No other
    // code would hang it up.
    stopped.then(endAll, () => undefined);
    await untilEmpty(endAllTimeoutMs);
  };
  return {
    drain: (drainMs, force) => {
      drained ??= drainNow(drainMs, force);
      return drained;
    },
    isDraining: () => drained !== undefined,
  };
}
