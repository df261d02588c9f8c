// A pause that is shared: it begins with the first that waits, and those that come before its end are woken with it. What
// they write then goes into one statement.

export class SharedPause {
  readonly #durationMs: number;
  #current: Promise<void> | undefined;

  constructor(durationMs: number) {
    this.#durationMs = durationMs;
  }

  /** Settles at the end of the pause that runs, or of a new one: after `durationMs` at the latest. */
  end(): Promise<void> {
    this.#current ??= new Promise((resolve) => {
      setTimeout(() => {
        this.#current = undefined;
        resolve();
      }, this.#durationMs);
    });
    return this.#current;
  }
}
