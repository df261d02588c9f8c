// Looks for work again and again, one look at a time: soon where it is asked for, else after a while.

import type { Logger } from '../lib/logger.ts';

/** What is left after a look. */
export type Found = 'more' | 'wanted' | 'nothing';

export type PollerOptions = {
  readonly everyMs: number;
  /** The pause while nothing is owed; 0: others write here too. */
  readonly longestRestMs: number;
  readonly logger: Logger;
  /** `due`: look for everything that is due, else only for what was asked for by name. */
  readonly look: (due: boolean) => Promise<Found | 'nothing owed'>;
};

export class Poller {
  readonly #options: PollerOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookedForDueAt = Number.NEGATIVE_INFINITY;
  /** Asked for during a look. */
  #asked: 'nothing' | 'wanted' | 'due' = 'nothing';
  #wasWoken = false;
  #isResting = false;
  #isStopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Looks at once, or when the look that is under way has ended. */
  soon(due: boolean): void {
    if (this.#looking === undefined) this.#look(due);
    else if (this.#asked !== 'due') this.#asked = due ? 'due' : 'wanted';
  }

  /** Ends a rest. Call it when what is owed is stored: before that, a look could miss it. */
  wake(): void {
    this.#wasWoken = true;
    if (!this.#isResting) return;
    this.#isResting = false;
    this.#pause(this.#options.everyMs);
  }

  /** The look that is under way is waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  #look(due: boolean): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    const { everyMs, longestRestMs, logger, look } = this.#options;
    // What is asked for by name, one after the other, must not keep the rest waiting.
    const isDue = due || performance.now() - this.#lookedForDueAt >= everyMs;
    this.#wasWoken = false;
    this.#isResting = false;
    if (isDue) this.#lookedForDueAt = performance.now();
    this.#looking = look(isDue)
      .catch((error: unknown) => {
        logger.error({ err: error }, 'cannot look for notifications that are due');
        return 'nothing' as const;
      })
      .then((found) => {
        this.#looking = undefined;
        const asked = this.#asked;
        this.#asked = 'nothing';
        if (this.#isStopped) return;
        if (asked !== 'nothing' || found === 'more' || found === 'wanted')
          return this.#look(asked === 'due' || found === 'more');
        this.#isResting = found === 'nothing owed' && !this.#wasWoken && longestRestMs > everyMs;
        this.#pause(this.#isResting ? longestRestMs : everyMs);
      });
  }

  #pause(pauseMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => this.#look(true), pauseMs);
  }
}
