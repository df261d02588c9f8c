import { type Bound, within } from './within.ts';

/**
 * Waits until a condition holds. The code that changes the condition calls `notify`, and each
 * waiter then checks its condition again. Waiters belong to calls or to other bounded work, so
 * their number is bounded too.
 */
export class Changes {
  readonly #looks = new Set<() => void>();

  /** Call this after each change that other code may wait for. */
  notify(): void {
    for (const look of [...this.#looks]) look();
  }

  /** @returns false if a bound ended the wait first */
  async until(isSo: () => boolean, ...bounds: readonly Bound[]): Promise<boolean> {
    if (isSo()) return true;
    let look = (): void => undefined;
    const holds = new Promise<true>((resolve) => {
      look = () => {
        if (isSo()) resolve(true);
      };
    });
    this.#looks.add(look);
    try {
      return (await within(holds, ...bounds)) ?? false;
    } finally {
      this.#looks.delete(look);
    }
  }
}
