// Starts work that nothing awaits. An unhandled rejection would end the process, so fire-and-forget
// work must either start here or handle its own failures.

import type { Logger } from './logger.ts';

/** Logs any failure under `name` and otherwise ignores it. */
export function inBackground(
  work: Promise<unknown>,
  logger: Pick<Logger, 'error'>,
  name: string,
): void {
  work.catch((error: unknown) => {
    logger.error({ err: error, work: name }, 'work in the background failed');
  });
}
