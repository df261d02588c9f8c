// Waiting until something is as one wants it: the code that changes it says so, and each of those that wait looks again. There are no
// more of them than there are calls, or other bounded work, whose step each is.

export class Changes {
  readonly #looks = new Set<() => void>();

  /** To be called after each change that may be waited for. */
  tell(): void {
    for (const look of [...this.#looks]) look();
  }

  /** Resolves when it is so, at once if it is already. False: it was not before the signal. */
  until(isSo: () => boolean, signal: AbortSignal): Promise<boolean> {
    if (isSo()) return Promise.resolve(true);
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (result: boolean): void => {
        this.#looks.delete(look);
        signal.removeEventListener('abort', onAbort);
        resolve(result);
      };
      const look = (): void => {
        if (isSo()) settle(true);
      };
      const onAbort = (): void => settle(false);
      this.#looks.add(look);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
