// Closes parts in the reverse order of opening, because each part may use everything that was
// opened before it. A part that does not close in time is left behind and named in the result, so
// closing all parts never takes longer than the given time.

import type { Logger } from './logger.ts';
import { within } from './within.ts';

export type CloserOptions = {
  /** Time that stays available to this part, however long earlier parts take. */
  readonly reservedMs?: number;
  /**
   * If true, this part closes only if every part opened after it has closed, because a part that
   * was left behind may still use it.
   */
  readonly isLast?: boolean;
};

type Closer = CloserOptions & { readonly name: string; readonly close: () => unknown };

/**
 * Enough for a part that closes a few sockets cleanly or stores a little. A part with reserved time
 * may take longer.
 */
const partTimeoutMs = 1_000;
/**
 * For closing after a failed start. A shutdown also has this much time once its calls have ended.
 */
const defaultTimeoutMs = 5_000;

export class Closers {
  readonly #closers: Closer[] = [];
  /** Parts that have started to close and have not finished. */
  readonly #closing = new Set<Closer>();
  readonly #logger: Logger;
  #closed: Promise<readonly string[]> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(name: string, close: Closer['close'], options: CloserOptions = {}): void {
    this.#closers.push({ ...options, name, close });
  }

  /** Returns the names of the parts that are not closed yet, in the order in which they close. */
  unclosed(): readonly string[] {
    return [...this.#closing, ...this.#closers.toReversed()].map(({ name }) => name);
  }

  /**
   * Closes all parts, even if one of them throws. Calling it again returns the same promise.
   * Resolves within the time, with the names of the parts that were left behind.
   */
  closeAll(timeoutMs = defaultTimeoutMs): Promise<readonly string[]> {
    this.#closed ??= this.#closeInTurn(performance.now() + timeoutMs);
    return this.#closed;
  }

  async #closeInTurn(endsAtMs: number): Promise<readonly string[]> {
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) {
      const reservedForOthersMs = this.#closers.reduce(
        (sum, other) => sum + (other.reservedMs ?? 0),
        0,
      );
      const leftMs = Math.max(0, endsAtMs - performance.now() - reservedForOthersMs);
      const boundMs = closer.reservedMs === undefined ? Math.min(leftMs, partTimeoutMs) : leftMs;
      const isAllowed = closer.isLast !== true || this.#closing.size === 0;
      this.#closing.add(closer);
      // We call `close` even if no time is left, because most parts close immediately.
      if (isAllowed) await within(this.#close(closer), boundMs);
      if (this.#closing.has(closer))
        this.#logger.warn(
          { part: closer.name, boundMs },
          'a part is left behind: it did not close in time',
        );
    }
    return this.unclosed();
  }

  async #close(closer: Closer): Promise<void> {
    try {
      await closer.close();
    } catch (error) {
      this.#logger.error({ err: error, part: closer.name }, 'a part did not close cleanly');
    }
    this.#closing.delete(closer);
  }
}
