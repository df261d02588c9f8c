// Work that no code awaits. Node ends the process if a rejected promise has no handler, so such
// work must start here or handle its own failures.

import type { Logger } from './logger.ts';

/** Logs a failure of the work and otherwise ignores it. `name` names the work in the log. */
export function inBackground(
  work: Promise<unknown>,
  logger: Pick<Logger, 'error'>,
  name: string,
): void {
  work.catch((error: unknown) => {
    logger.error({ err: error, work: name }, 'work in the background failed');
  });
}
