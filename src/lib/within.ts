/** A time-out in milliseconds, or a signal. */
export type Bound = number | AbortSignal;

/**
 * Waits for the work until the first bound is reached, without cancelling the work. We accept
 * several bounds instead of one `AbortSignal.any`, because Node 20 may garbage-collect a combined
 * signal that includes an `AbortSignal.timeout`, in which case the signal never aborts.
 *
 * @returns undefined if a bound ended the wait first
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
