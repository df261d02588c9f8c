import { type Bound, within } from './within.ts';

/**
 * Waits until a condition becomes true. Code that may change the condition calls `notify`, and each
 * waiter then checks again. Each waiter belongs to a phone call or other bounded work, so the
 * number of waiters is bounded, too.
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
