// A clock whose time passes only when a test advances it.

import type { EngineClock } from '../../../src/embedded/drachtio/transaction/engine-timing.ts';

type Timer = { readonly atMs: number; readonly order: number; readonly callback: () => void };

export class SimulatedClock implements EngineClock {
  #nowMs = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  get pending(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#nowMs;
  }

  setTimer(callback: () => void, delayMs: number): object {
    this.#order += 1;
    const timer: Timer = { atMs: this.#nowMs + delayMs, order: this.#order, callback };
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(handle: object | undefined): void {
    this.#timers.delete(handle as Timer);
  }

  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const [next] = [...this.#timers]
        .filter((timer) => timer.atMs <= untilMs)
        .sort((left, right) => left.atMs - right.atMs || left.order - right.order);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = next.atMs;
      next.callback();
    }
    this.#nowMs = untilMs;
  }
}
