// One timer for all of the sandbox's calls. It ticks every 20 ms without drift, and stops while
// there are no calls.

import { frameMs } from './sounds.ts';

export type Ticking = {
  /** Called every 20 ms. */
  tick(): void;
};

/**
 * Maximum number of missed ticks to make up for after a pause of the event loop. A phone's jitter
 * buffer can cope with a burst of this many packets. If the pause was longer, we skip the rest.
 */
const maxMadeUpTicks = 5;

export class FrameClock {
  readonly #now: () => number;
  readonly #members = new Set<Ticking>();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  add(member: Ticking): void {
    this.#members.add(member);
    if (this.#timer !== undefined) return;
    this.#dueAt = this.#now() + frameMs;
    this.#schedule();
  }

  remove(member: Ticking): void {
    this.#members.delete(member);
    if (this.#members.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, this.#dueAt - this.#now()));
  }

  #wake(): void {
    const now = this.#now();
    this.#dueAt = Math.max(this.#dueAt, now - maxMadeUpTicks * frameMs);
    for (; this.#dueAt <= now; this.#dueAt += frameMs) {
      // A member may remove itself during its tick, which is fine while iterating over a Set.
      for (const member of this.#members) member.tick();
    }
    // Undefined if the last member left during its tick.
    if (this.#timer !== undefined) this.#schedule();
  }
}
