// Waits until a condition holds, and fails with the name of what was missing.

/** Ten seconds: a loaded machine may stand still for some seconds, and yet a failure shows soon. */
const defaultWithinMs = 10_000;
const pollMs = 5;

/**
 * Polls `condition` until it is true.
 * @param what a clause that names what is awaited, e.g. `the call ends`. A function is called only
 * after the time is over.
 * @param withinMs is needed only if the awaited thing takes more than about 5 s by its design.
 * @throws Error that names `what` after `withinMs`. An error of `condition` passes through.
 */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string),
  withinMs = defaultWithinMs,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      const missing = typeof what === 'string' ? what : what();
      throw new Error(`not within ${withinMs / 1_000} s: ${missing}`);
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
