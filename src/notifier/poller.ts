// Looks for work again and again, one look at a time: soon where it is asked for, else after a while.

import type { Logger } from '../lib/logger.ts';

export type PollerOptions = {
  readonly everyMs: number;
  readonly logger: Logger;
  /** `due`: look for everything that is due, else only for what was asked for by name. Tells what there is left. */
  readonly look: (due: boolean) => Promise<'more' | 'wanted' | 'nothing'>;
};

export class Poller {
  readonly #options: PollerOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookedForDueAt = Number.NEGATIVE_INFINITY;
  /** Asked for during a look. */
  #asked: 'nothing' | 'wanted' | 'due' = 'nothing';
  #isStopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Looks at once, or when the look that is under way has ended. */
  soon(due: boolean): void {
    if (this.#looking === undefined) this.#look(due);
    else if (this.#asked !== 'due') this.#asked = due ? 'due' : 'wanted';
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
    const { everyMs, logger, look } = this.#options;
    // What is asked for by name, one after the other, must not keep the rest waiting.
    const isDue = due || performance.now() - this.#lookedForDueAt >= everyMs;
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
        if (asked !== 'nothing' || found !== 'nothing')
          this.#look(asked === 'due' || found === 'more');
        else this.#timer = setTimeout(() => this.#look(true), everyMs);
      });
  }
}
