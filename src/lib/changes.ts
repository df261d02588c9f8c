import { type Bound, within } from './within.ts';

/**
 * Waits until a condition holds. Code that may change the condition calls `notify`, and each waiter
 * then checks again. Waiters belong to calls or other bounded work, which bounds their number too.
 */
export class Changes {
  readonly #checks = new Set<() => void>();

  /** Call this after any change that a waiter might be waiting for. */
  notify(): void {
    for (const check of [...this.#checks]) check();
  }

  /** @returns false if a bound ended the wait first */
  async until(condition: () => boolean, ...bounds: readonly Bound[]): Promise<boolean> {
    if (condition()) return true;
    let check = (): void => undefined;
    const holds = new Promise<true>((resolve) => {
      check = () => {
        if (condition()) resolve(true);
      };
    });
    this.#checks.add(check);
    try {
      return (await within(holds, ...bounds)) ?? false;
    } finally {
      this.#checks.delete(check);
    }
  }
}
