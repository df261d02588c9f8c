// Ends a process's calls before it shuts down. We stop taking calls, let the current ones continue
// for a while, then hang up the rest.

import type { CallRegistry } from '../calls/life/call-registry.ts';
import { type Bound, within } from '../lib/within.ts';

/**
 * How long we wait for calls to end after hanging them up. Hanging up, `amd_stopped` and storing
 * the end usually take much less. Slower calls can still end while the process settles.
 */
const endAllTimeoutMs = 1_500;

export type Drain = {
  /**
   * Stops taking calls. Ends the current calls after `drainMs` or as soon as `force` aborts.
   * Resolves when all calls have ended or the time for hanging up has passed. Further calls return
   * the same promise.
   */
  readonly drain: (drainMs: number, force: AbortSignal) => Promise<void>;
  readonly isDraining: () => boolean;
};

/**
 * @param stopTaking must stop new takes immediately. It resolves once the takes under way have
 *   returned their calls, which can take a long time if the database doesn't respond.
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
    // A call from a take under way may still start, now or when the database responds again.
    // Nothing else would hang it up.
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
