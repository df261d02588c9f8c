import type { Logger } from './logger.ts';

export type Repetition = {
  /**
   * Ends a rest. Call it only after the data that a run should find has been stored. Otherwise the
   * run could miss the data and go back to resting.
   */
  wake(): void;
  /**
   * Stops the repetition and waits for the current run. Work that may wait a long time must end
   * when its signal aborts.
   */
  stop(): Promise<void>;
};

export type RepetitionOptions = {
  readonly name: string;
  readonly everyMs: number;
  /**
   * How long to pause after a run that found nothing, instead of `everyMs`. Use this only if all
   * code that creates work for the run is in this process and calls `wake`. Because the rest is
   * bounded, a forgotten `wake` costs only a delay. Default: 0, which means no rests.
   */
  readonly maxRestMs?: number;
  readonly logger: Logger;
};

/**
 * Repeats work without overlapping runs. A failed run is logged, and the next run follows as usual.
 * The work should resolve with false if it left nothing for the next run.
 */
export function repeat(
  { name, everyMs, maxRestMs = 0, logger }: RepetitionOptions,
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
      isResting = (await work(stopping.signal)) === false && !wasWoken && maxRestMs > everyMs;
    } catch (error) {
      if (!stopping.signal.aborted)
        logger.warn({ err: error, work: name }, 'a run of background work failed');
    }
    schedule();
  };
  const schedule = (): void => {
    if (stopping.signal.aborted) return;
    const pauseMs = isResting ? maxRestMs : everyMs;
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
