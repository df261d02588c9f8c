import type { Logger } from './logger.ts';

export type Repetition = {
  /** Ends a rest. Call it when what a run may find is stored: before that, a run could miss it and rest. */
  wake(): void;
  /** Waits for the run under way: work that waits for something must end with the signal that it is given. */
  stop(): Promise<void>;
};

export type RepetitionOptions = {
  readonly name: string;
  readonly everyMs: number;
  /**
   * The pause after a run that found nothing, in place of `everyMs`: where all writers are in this process and wake it. It is
   * bounded, so that a forgotten wake costs a delay and nothing else. 0 or absent: runs never rest.
   */
  readonly longestRestMs?: number;
  readonly logger: Logger;
};

/**
 * Does work again and again, never twice at the same time; a failure only delays the next run. The work resolves with false if
 * it left nothing for the next run.
 */
export function repeat(
  { name, everyMs, longestRestMs = 0, logger }: RepetitionOptions,
  work: (stopped: AbortSignal) => Promise<unknown>,
): Repetition {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let wasWoken = false;
  let isResting = false;
  const stopping = new AbortController();

  const run = async (): Promise<void> => {
    wasWoken = false;
    try {
      isResting = (await work(stopping.signal)) === false && !wasWoken && longestRestMs > everyMs;
    } catch (error) {
      if (!stopping.signal.aborted)
        logger.warn({ err: error, work: name }, 'a run of background work failed');
    }
    schedule();
  };
  const schedule = (): void => {
    if (stopping.signal.aborted) return;
    const pauseMs = isResting ? longestRestMs : everyMs;
    timer = setTimeout(() => {
      isResting = false;
      running = run();
    }, pauseMs);
    timer.unref();
  };

  schedule();
  return {
    wake() {
      wasWoken = true;
      if (!isResting) return;
      isResting = false;
      clearTimeout(timer);
      schedule();
    },
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
