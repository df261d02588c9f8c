// Lets the work that a thread repeats begin at the same instants, its beats. After a pause of a few
// dozen milliseconds, a thread's code and data have left the caches, so whatever runs first takes
// several times its usual CPU time. Work that begins together pays for that once: an idle gateway's
// main thread needs two thirds of the CPU that it needs if each piece of work wakes it.

/** After a shorter pause, a run would follow the last one almost at once. */
const shortestShare = 1 / 8;

/**
 * Returns the pause until the next run of work that is due every `everyMs`, in whole milliseconds.
 * Runs begin at multiples of `everyMs` on this thread's monotonic clock. If the next multiple is
 * too close, the pause is `everyMs`. It is never longer.
 */
export function untilBeat(everyMs: number, nowMs = performance.now()): number {
  const leftMs = everyMs - (nowMs % everyMs);
  // Timers drop fractions, so they would fire before the beat.
  return Math.ceil(leftMs < everyMs * shortestShare ? everyMs : leftMs);
}

/**
 * Runs `work` at every beat until the returned function is called. Doesn't keep the process alive.
 */
export function onEveryBeat(everyMs: number, work: () => void): () => void {
  let timer: NodeJS.Timeout;
  const schedule = (): void => {
    timer = setTimeout(() => {
      schedule();
      work();
    }, untilBeat(everyMs));
    timer.unref();
  };
  schedule();
  return () => clearTimeout(timer);
}
