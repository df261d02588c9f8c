// How the calls of a process end with it: nothing more is taken, those that are up may go on for a while, then they are hung up.

import type { CallRegistry } from '../calls/life/call-registry.ts';
import { type Bound, within } from '../lib/within.ts';

/**
 * Hanging up, `amd_stopped`, and the end in SQL take well under this. Slower calls go on ending while
 * the process settles.
 */
const endAllTimeoutMs = 1_500;

export type Drain = {
  /** Resolves when the calls have ended, or are to be left. `force`: they end now. The same one for all who ask. */
  readonly drain: (drainMs: number, force: AbortSignal) => Promise<void>;
  readonly isDraining: () => boolean;
};

/** `stopTaking`: takes nothing more at once; resolves when what is under way is known, which a database that does not answer delays. */
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
    // What was being taken may start now, or when the database answers again: nobody else would hang it up.
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
