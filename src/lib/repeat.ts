// Work that is done again and again, never twice at the same time, and whose failure only delays the next run.

import type { Logger } from './logger.ts';

/** `stop` waits for the run under way: work that waits for something must end with the signal that it is given. */
export type Repetition = { stop(): Promise<void> };

export function repeat(
  options: { readonly name: string; readonly everyMs: number; readonly logger: Logger },
  work: (stopped: AbortSignal) => Promise<unknown>,
): Repetition {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const stopping = new AbortController();

  const run = async (): Promise<void> => {
    try {
      await work(stopping.signal);
    } catch (error) {
      if (!stopping.signal.aborted)
        options.logger.warn({ err: error, work: options.name }, 'a run of background work failed');
    }
    schedule();
  };
  const schedule = (): void => {
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => {
      running = run();
    }, options.everyMs);
    timer.unref();
  };

  schedule();
  return {
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
