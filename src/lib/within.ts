/** A time-out in milliseconds, or a signal. */
export type Bound = number | AbortSignal;

/**
 * Waits for the work until the first of the bounds. The work itself goes on. Several bounds are
 * allowed because Node 20 may garbage-collect the signal that `AbortSignal.any` makes of an
 * `AbortSignal.timeout`. That signal then never aborts.
 *
 * @returns undefined if a bound came first
 */
export async function within<Value>(
  work: Promise<Value>,
  ...bounds: readonly Bound[]
): Promise<Value | undefined> {
  const ends: (() => void)[] = [];
  const bounded = new Promise<undefined>((resolve) => {
    const end = (): void => resolve(undefined);
    for (const bound of bounds) {
      if (typeof bound === 'number') {
        const timer = setTimeout(end, bound);
        ends.push(() => clearTimeout(timer));
      } else {
        bound.addEventListener('abort', end, { once: true });
        ends.push(() => bound.removeEventListener('abort', end));
        if (bound.aborted) end();
      }
    }
  });
  try {
    return await Promise.race([work, bounded]);
  } finally {
    for (const end of ends) end();
  }
}
