// One timer for all calls of the sandbox: a tick every 20 ms that does not drift, and none while there is no call.

import { frameMs } from './sounds.ts';

export type Ticking = {
  /** 20 ms later. */
  tick(): void;
};

/**
 * After a pause of the event loop this many ticks are made up for at once, as a phone's jitter buffer bears; of a longer
 * pause the rest is left out, so that no burst of packets follows it.
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
      // A member may leave while it ticks; a set bears that.
      for (const member of this.#members) member.tick();
    }
    // Still undefined when the last member left during its tick.
    if (this.#timer !== undefined) this.#schedule();
  }
}
