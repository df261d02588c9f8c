// Waits until a condition holds. The error of a time-out names the condition.

/** A loaded machine may stand still for a few seconds, but we don't want failures to take long. */
const defaultWithinMs = 10_000;
/** Later polls are rarer, because many conditions ask a gateway over HTTP. */
const pollMs = 10;
const soonMs = 1_000;
const laterPollMs = 50;

/**
 * Polls `condition` until it is true.
 * @param what a clause that names the condition, e.g. `the call ends`. A function is called only
 *   after the time-out.
 * @param withinMs only needed if the condition takes more than about 5 s by design.
 * @throws Error that names `what` after `withinMs`. An error thrown by `condition` passes through.
 */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string),
  withinMs = defaultWithinMs,
): Promise<void> {
  const startedMs = performance.now();
  while (!(await condition())) {
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs > withinMs) {
      const missing = typeof what === 'string' ? what : what();
      throw new Error(`not within ${withinMs / 1_000} s: ${missing}`);
    }
    const pauseMs = elapsedMs < soonMs ? pollMs : laterPollMs;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
