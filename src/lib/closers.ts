// Closes the process's parts in reverse order of opening, because each part may use anything opened
// before it. If a part doesn't close in time, we go on without it and name it in the result. That
// way, closing everything never exceeds the given time.

import type { Logger } from './logger.ts';
import { within } from './within.ts';

export type CloserOptions = {
  /** Time set aside for this part, no matter how long the parts before it take. */
  readonly reservedMs?: number;
  /**
   * If true, we don't close this part until every part opened after it has closed, because a part
   * that was left behind may still be using it.
   */
  readonly isLast?: boolean;
};

type Closer = CloserOptions & { readonly name: string; readonly close: () => unknown };

/**
 * Enough to close a few sockets cleanly or store a little data. Parts with reserved time may take
 * longer.
 */
const partTimeoutMs = 1_000;
/** Used after a failed start. A shutdown has the same time once all calls have ended. */
const defaultTimeoutMs = 5_000;

export class Closers {
  readonly #closers: Closer[] = [];
  /** Parts that are still closing. */
  readonly #closing = new Set<Closer>();
  readonly #logger: Logger;
  #closed: Promise<readonly string[]> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(name: string, close: Closer['close'], options: CloserOptions = {}): void {
    this.#closers.push({ ...options, name, close });
  }

  /** Returns the names of the parts that are still open, in closing order. */
  unclosed(): readonly string[] {
    return [...this.#closing, ...this.#closers.toReversed()].map(({ name }) => name);
  }

  /**
   * Closes all parts, even if one of them throws. Resolves within `timeoutMs` with the names of any
   * parts left behind. Further calls return the same promise.
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
      // Call `close` even if there is no time left, because most parts close immediately anyway.
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
