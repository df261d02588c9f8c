// Closes what was opened, in the opposite order: each part may rely on everything that was opened before
// it. A part that does not close in its time is left behind and named, so that all of them together
// take no longer than they are given.

import type { Logger } from './logger.ts';
import { within } from './within.ts';

export type CloserOptions = {
  /** Kept for this part, whatever the parts before it take. */
  readonly reservedMs?: number;
  /** Closed only if every part before it has closed: a part that is left behind still uses it. */
  readonly isLast?: boolean;
};

type Closer = CloserOptions & { readonly name: string; readonly close: () => unknown };

/** A part says goodbye on a few sockets, or stores a little. With reserved time, it may take longer. */
const partTimeoutMs = 1_000;
/** For a start that failed: as long as a process has after its calls. */
const defaultTimeoutMs = 5_000;

export class Closers {
  readonly #closers: Closer[] = [];
  /** Those whose close has begun. */
  readonly #closing = new Set<Closer>();
  readonly #logger: Logger;
  #closed: Promise<readonly string[]> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(name: string, close: Closer['close'], options: CloserOptions = {}): void {
    this.#closers.push({ ...options, name, close });
  }

  /** What has not closed yet, in the order in which it closes. */
  unclosed(): readonly string[] {
    return [...this.#closing, ...this.#closers.toReversed()].map(({ name }) => name);
  }

  /**
   * Closes all parts, whatever one of them throws; once, however often it is called. Resolves within
   * the time, with the names of the parts that were left behind.
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
      // Called also where no time is left: most parts are closed by then.
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
