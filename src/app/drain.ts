// Ends a process's calls before it shuts down. We stop claiming queued calls, let the current calls
// continue for a while, and then hang up the rest.

import type { CallRegistry } from '../calls/life/call-registry.ts';
import { type Bound, within } from '../lib/within.ts';

/**
 * How long we wait for calls to end after hanging them up. Hanging up, sending `amd_stopped` and
 * storing the end usually take much less. Slower calls can still end while the process is waiting
 * in `settle`.
 */
const endAllTimeoutMs = 1_500;

export type Drain = {
  /**
   * Stops claiming calls. Ends the current calls after `drainMs` or as soon as `force` aborts.
   * Resolves when all calls have ended or the time for hanging up has passed. If `drain` is called
   * again, it returns the same promise.
   */
  readonly drain: (drainMs: number, force: AbortSignal) => Promise<void>;
  readonly isDraining: () => boolean;
};

/**
 * @param stopTaking stops this process from claiming calls. It resolves once any requests to the
 *   database that are already under way have returned their calls, which can take a long time if
 *   the database doesn't respond.
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
    // A call that was being claimed may still start, either now or when the database responds
    // again. Nothing else would hang it up.
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
