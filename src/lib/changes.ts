import { type Bound, within } from './within.ts';

/**
 * Waits until a condition holds. The code that changes the condition calls `notify`, and each
 * waiter checks its condition again. There are never more waiters than calls or other bounded
 * pieces of work.
 */
export class Changes {
  readonly #looks = new Set<() => void>();

  /** Must be called after each change that somebody may wait for. */
  notify(): void {
    for (const look of [...this.#looks]) look();
  }

  /** @returns false if a bound came first */
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
