// Polls for work, one poll at a time. A poll starts immediately on request, or otherwise after a
// pause.

import { untilBeat } from '../lib/beat.ts';
import type { Logger } from '../lib/logger.ts';

/** What is still to be polled for after a poll, i.e. more due calls, wanted calls, or nothing. */
export type Found = 'more' | 'wanted' | 'nothing';

export type PollerOptions = {
  readonly everyMs: number;
  /** Pause while no notification is pending. 0 if other processes write to the same database. */
  readonly maxRestMs: number;
  readonly logger: Logger;
  /** Leases all due calls if `due` is true, otherwise only wanted calls, whose ids are known. */
  readonly poll: (due: boolean) => Promise<Found | 'nothing owed'>;
};

export class Poller {
  readonly #options: PollerOptions;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #polledForDueAt = Number.NEGATIVE_INFINITY;
  /** What `soon` has requested since the current poll started. */
  #requested: 'nothing' | 'wanted' | 'due' = 'nothing';
  #wasWoken = false;
  #isResting = false;
  #isStopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Polls now, or right after the current poll. */
  soon(due: boolean): void {
    if (this.#polling === undefined) this.#poll(due);
    else if (this.#requested !== 'due') this.#requested = due ? 'due' : 'wanted';
  }

  /** Ends a rest. Store the notification before calling this, or the next poll may miss it. */
  wake(): void {
    this.#wasWoken = true;
    if (!this.#isResting) return;
    this.#isResting = false;
    this.#pause(this.#options.everyMs);
  }

  /** Waits for the current poll to end. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#polling;
  }

  #poll(due: boolean): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    const { everyMs, maxRestMs, logger, poll } = this.#options;
    // Frequent polls for wanted calls must not delay the poll for due calls.
    const isDue = due || performance.now() - this.#polledForDueAt >= everyMs;
    this.#wasWoken = false;
    this.#isResting = false;
    if (isDue) this.#polledForDueAt = performance.now();
    this.#polling = poll(isDue)
      .catch((error: unknown) => {
        logger.error({ err: error }, 'cannot find due notifications');
        return 'nothing' as const;
      })
      .then((found) => {
        this.#polling = undefined;
        const requested = this.#requested;
        this.#requested = 'nothing';
        if (this.#isStopped) return;
        if (requested !== 'nothing' || found === 'more' || found === 'wanted')
          return this.#poll(requested === 'due' || found === 'more');
        this.#isResting = found === 'nothing owed' && !this.#wasWoken && maxRestMs > everyMs;
        this.#pause(this.#isResting ? maxRestMs : everyMs);
      });
  }

  #pause(pauseMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => this.#poll(true), untilBeat(pauseMs));
  }
}
