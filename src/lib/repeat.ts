import type { Logger } from './logger.ts';

export type Repetition = {
  /**
   * Ends a rest. Call it after storing the data that a run should find. If you call it earlier, a
   * run could miss the data and start to rest.
   */
  wake(): void;
  /**
   * Stops the repetition and waits for the current run. Work that may wait for long must end when
   * its signal aborts.
   */
  stop(): Promise<void>;
};

export type RepetitionOptions = {
  readonly name: string;
  readonly everyMs: number;
  /**
   * The pause after a run that found nothing, in place of `everyMs`. Only for work whose writers
   * are all in this process and call `wake`. The pause is bounded, so that a forgotten `wake` costs
   * only a delay. Default: 0, no rests.
   */
  readonly longestRestMs?: number;
  readonly logger: Logger;
};

/**
 * Repeats work, never two runs at the same time. A failure only delays the next run. The work
 * resolves with false if it left nothing for the next run.
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
