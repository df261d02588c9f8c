// Work that is done again and again, never twice at the same time, and whose failure only delays the next round.

import type { Logger } from './logger.ts';

export type Repetition = { stop(): Promise<void> };

export function repeat(
  options: { readonly name: string; readonly everyMs: number; readonly logger: Logger },
  work: () => Promise<unknown>,
): Repetition {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;

  const round = async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!stopped)
        options.logger.warn(
          { err: error, work: options.name },
          'a round of background work failed',
        );
    }
    schedule();
  };
  const schedule = (): void => {
    if (stopped) return;
    timer = setTimeout(() => {
      running = round();
    }, options.everyMs);
    timer.unref();
  };

  schedule();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
