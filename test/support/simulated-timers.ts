// Timers whose time passes when the test says so.

import type { ChartTimers } from '../../src/lib/statechart/running-chart.ts';

type Timer = { readonly run: () => void; readonly dueAt: number };

export class SimulatedTimers implements ChartTimers {
  readonly #timers = new Set<Timer>();
  #now = 0;

  now(): number {
    return this.#now;
  }

  setTimeout(run: () => void, delayMs: number): Timer {
    const timer = { run, dueAt: this.#now + delayMs };
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(timer: Timer): void {
    this.#timers.delete(timer);
  }

  /** What is due is run in its order, also what that sets anew. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const [next] = [...this.#timers].sort((one, other) => one.dueAt - other.dueAt);
      if (next === undefined || next.dueAt > until) break;
      this.#timers.delete(next);
      this.#now = next.dueAt;
      next.run();
    }
    this.#now = until;
  }
}
