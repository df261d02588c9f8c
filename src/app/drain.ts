// Ends the calls of a process that shuts down: it takes no more calls, lets the calls that are up
// go on for a while, and then hangs up those that are left.

import type { CallRegistry } from '../calls/life/call-registry.ts';
import { type Bound, within } from '../lib/within.ts';

/**
 * Bounds the wait after all calls were asked to end. Hanging up, `amd_stopped` and storing the end
 * take well under this. Slower calls go on ending while the process settles.
 */
const endAllTimeoutMs = 1_500;

export type Drain = {
  /**
   * Takes no more calls, and ends the others after `drainMs`, or at once when `force` aborts.
   * Resolves when all calls have ended, or when the time for hanging up has passed. Later calls of
   * this function return the result of the first one.
   */
  readonly drain: (drainMs: number, force: AbortSignal) => Promise<void>;
  readonly isDraining: () => boolean;
};

/**
 * `stopTaking` must stop taking calls at once. It resolves when the takes that are under way have
 * returned their calls, which may be late if the database does not answer.
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
    // A call that was just being taken may still start, now or when the database answers again. No
    // other code would hang it up.
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
