// Looks for work again and again, one look at a time: at once on request, and otherwise after a
// pause.

import type { Logger } from '../lib/logger.ts';

/** What is left after a look: more due calls, calls that were asked for by id, or nothing. */
export type Found = 'more' | 'wanted' | 'nothing';

export type PollerOptions = {
  readonly everyMs: number;
  /** Pause while no notification is owed. 0 if other processes write to the same database. */
  readonly longestRestMs: number;
  readonly logger: Logger;
  /**
   * Looks for all due calls if `due` is true, and otherwise only for calls that were asked for by
   * id.
   */
  readonly look: (due: boolean) => Promise<Found | 'nothing owed'>;
};

export class Poller {
  readonly #options: PollerOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookedForDueAt = Number.NEGATIVE_INFINITY;
  /** What `soon` asked for during the current look. */
  #asked: 'nothing' | 'wanted' | 'due' = 'nothing';
  #wasWoken = false;
  #isResting = false;
  #isStopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Looks at once, or as soon as the current look has ended. */
  soon(due: boolean): void {
    if (this.#looking === undefined) this.#look(due);
    else if (this.#asked !== 'due') this.#asked = due ? 'due' : 'wanted';
  }

  /** Ends a rest. Call it after the notification is stored: an earlier look could miss it. */
  wake(): void {
    this.#wasWoken = true;
    if (!this.#isResting) return;
    this.#isResting = false;
    this.#pause(this.#options.everyMs);
  }

  /** Waits for the current look to end. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  #look(due: boolean): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    const { everyMs, longestRestMs, logger, look } = this.#options;
    // Repeated looks for single calls must not delay the look for due calls.
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
