// Lets the work that a thread repeats begin at almost the same instants, its beats. After a pause
// of a few dozen milliseconds, a thread's first callback takes milliseconds of CPU, whatever it
// does, because its code and data have left the caches. What follows soon takes a tenth of that. So
// an idle gateway needs half the CPU if its periodic work shares its wakes.

/**
 * The pieces of work begin one after the other, so that each finds the database connection that the
 * one before has just used. Otherwise, the gateway would keep a connection open for each of them,
 * and PostgreSQL a process.
 */
const spacingMs = 4;
const maxSpaces = 16;
/** A shorter pause is skipped, so that a run isn't followed by the next one at once. */
const shortestShare = 1 / 8;

let begun = 0;

/** When one piece of repeated work is due. */
export class Beat {
  readonly #offsetMs = (begun++ % maxSpaces) * spacingMs;

  /**
   * Returns the pause until the next run of work that is due every `everyMs`, in whole
   * milliseconds. Runs begin at multiples of `everyMs` on this thread's monotonic clock, plus the
   * work's offset. The pause lasts between an eighth and nine eighths of `everyMs`.
   */
  untilNext(everyMs: number, nowMs = performance.now()): number {
    const leftMs = everyMs - ((nowMs - this.#offsetMs + everyMs) % everyMs);
    const isShort = leftMs < everyMs * shortestShare;
    // Timers drop fractions, so they would fire before the beat.
    return Math.ceil(isShort ? leftMs + everyMs : leftMs);
  }
}

/**
 * Runs `work` at every beat until the returned function is called. Doesn't keep the process alive.
 */
export function onEveryBeat(everyMs: number, work: () => void): () => void {
  const beat = new Beat();
  let timer: NodeJS.Timeout;
  const schedule = (): void => {
    timer = setTimeout(() => {
      schedule();
      work();
    }, beat.untilNext(everyMs));
    timer.unref();
  };
  schedule();
  return () => clearTimeout(timer);
}
