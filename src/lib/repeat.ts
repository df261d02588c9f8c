import { untilBeat } from './beat.ts';
import type { Logger } from './logger.ts';

export type Repetition = {
  /**
   * Ends a rest. Call this only after storing the data that a run should find. Otherwise the run
   * could miss the data, and the next rest would start.
   */
  wake(): void;
  /**
   * Stops the repetition and waits for the current run. If the work may wait for a long time, it
   * must end when its signal aborts.
   */
  stop(): Promise<void>;
};

export type RepetitionOptions = {
  readonly name: string;
  /** Runs begin at multiples of this on a clock that all repeated work shares (`beat.ts`). */
  readonly everyMs: number;
  /**
   * Replaces `everyMs` after a run that found nothing to do. Use this only if all code that creates
   * work for the run is in this process and calls `wake`. Because the rest is bounded, a forgotten
   * `wake` only causes a delay. The default is 0, which means that there are no rests.
   */
  readonly maxRestMs?: number;
  readonly logger: Logger;
};

/**
 * Repeats work without overlapping runs. A failed run is logged, and the next run follows as usual.
 * The work should resolve with false if there is nothing left to do for the next run.
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
    }, untilBeat(pauseMs));
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
