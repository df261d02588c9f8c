// Work that nobody waits for. Node ends the process when a rejected promise has no handler. Such
// work must start here, or handle its own failure.

import type { Logger } from './logger.ts';

/** Logs a failure of the work and otherwise ignores it. `what` names the work in the log. */
export function inBackground(
  work: Promise<unknown>,
  logger: Pick<Logger, 'error'>,
  what: string,
): void {
  work.catch((error: unknown) => {
    logger.error({ err: error, work: what }, 'work in the background failed');
  });
}
