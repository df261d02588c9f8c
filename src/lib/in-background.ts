// Starts work that no code awaits. An unhandled rejection would crash the process, so
// fire-and-forget work must either be started here or handle its own errors.

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
