// One timer for all calls in the sandbox. It ticks every 20 ms without drifting, and stops when
// there aren't any calls.

import { frameMs } from './sounds.ts';

export type Ticking = {
  /** Called every 20 ms. */
  tick(): void;
};

/**
 * If the event loop was blocked, we make up for no more than this many missed ticks, because a
 * phone's jitter buffer can cope with a burst of this many packets. After a longer pause, we skip
 * the other ticks.
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
      // A member may remove itself during its tick, which is fine because we're iterating over a
      // Set.
      for (const member of this.#members) member.tick();
    }
    // Undefined if the last member has left during its tick.
    if (this.#timer !== undefined) this.#schedule();
  }
}
