import { type Bound, within } from './within.ts';

/**
 * Waits until a condition holds: the code that changes it calls `tell`, and each waiter looks again. The number of waiters is
 * bounded by the calls, or other bounded work, that they are steps of.
 */
export class Changes {
  readonly #looks = new Set<() => void>();

  /** Is called after each change that may be waited for. */
  tell(): void {
    for (const look of [...this.#looks]) look();
  }

  /** @returns false if the condition did not hold before the first of the bounds. */
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
