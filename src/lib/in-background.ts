// Work that nobody waits for. Node ends the process when a promise is rejected that nobody handles:
// such work starts here, or handles its failure where it starts.

import type { Logger } from './logger.ts';

/** Logs a failure of the work, and lets everything else go on. `what` names the work in the log. */
export function inBackground(
  work: Promise<unknown>,
  logger: Pick<Logger, 'error'>,
  what: string,
): void {
  work.catch((error: unknown) => {
    logger.error({ err: error, work: what }, 'work in the background failed');
  });
}
