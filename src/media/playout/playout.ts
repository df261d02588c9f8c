// A worker's playout clock, which ticks every 20 ms for every session. If the clock is late, it
// makes up for the missed ticks, because detection measures time by counting frames. Before that,
// it lets the sockets deliver the packets that arrived in the meantime.

import type { ThreadRest } from '../../lib/threads/thread-rest.ts';

export const tickMs = 20;
/**
 * A burst of three packets refills the far end's jitter buffer, whereas a longer burst would
 * overflow it.
 */
const maxTransmitLateMs = 60;
/**
 * If the clock is later than this, we read the sockets again before the next run. Node reads up to
 * 32 packets of a socket in one turn of the event loop (libuv's `uv__udp_recvmsg`). A shorter run
 * would play less than was read, until the jitter buffers skip what doesn't fit.
 */
const maxTicksPerRun = 32;

/** Counts 20 ms ticks on a monotonic clock without drifting. The caller reads the clock. */
export class PlayoutClock {
  #dueMs: number;

  constructor(nowMs: number) {
    this.#dueMs = nowMs + tickMs;
  }

  /** The time at which the next tick is due. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /**
   * Runs the ticks that are due, up to `maxTicksPerRun`. `transmit` is false if a tick is so late
   * that its packets would only add to a burst. `dueMs` is when the tick was due.
   * @returns false if more ticks are due
   */
  run(nowMs: number, tick: (transmit: boolean, dueMs: number) => void): boolean {
    for (let ticks = 0; ticks < maxTicksPerRun && this.#dueMs <= nowMs; ticks += 1) {
      const dueMs = this.#dueMs;
      this.#dueMs += tickMs;
      tick(nowMs - dueMs <= maxTransmitLateMs, dueMs);
    }
    return this.#dueMs > nowMs;
  }
}

export type PlayoutLoopSink = {
  /** `dueMs` is when the tick was due. */
  tick(transmit: boolean, dueMs: number): void;
  /**
   * Returns true if there are no sessions, in which case the clock stops until the next `start`.
   */
  isIdle(): boolean;
  /**
   * Returns true if all input can wait for the next tick. Until then the thread sleeps instead of
   * waking up for each packet, which saves a seventh of the CPU that a call with detection needs
   * (at 5 calls/s). A message from the main thread ends the sleep early.
   */
  mayRest(): boolean;
  /**
   * Called after a run of ticks, the first of which ran `lateMs` after it was due. If the clock
   * hasn't caught up, more ticks follow once the sockets have been read.
   */
  ran(lateMs: number, hasCaughtUp: boolean): void;
};

/** Runs the clock while the worker has sessions. */
export class PlayoutLoop {
  readonly #sink: PlayoutLoopSink;
  readonly #rest: Pick<ThreadRest, 'rest'>;
  #clock: PlayoutClock | undefined;
  #sleptSinceMs: number | undefined;
  #maxLateMs = 0;
  #ticksLate = 0;

  constructor(sink: PlayoutLoopSink, rest: Pick<ThreadRest, 'rest'>) {
    this.#sink = sink;
    this.#rest = rest;
  }

  /**
   * When the thread last read its sockets before it slept. Undefined if it hasn't slept since, so
   * what it reads has just arrived.
   */
  get sleptSinceMs(): number | undefined {
    return this.#sleptSinceMs;
  }

  /** The longest delay of the clock so far, in milliseconds. */
  get maxLateMs(): number {
    return this.#maxLateMs;
  }

  /** Number of ticks that ran too late to send packets. */
  get ticksLate(): number {
    return this.#ticksLate;
  }

  start(): void {
    if (this.#clock !== undefined) return;
    this.#clock = new PlayoutClock(performance.now());
    this.#wait(this.#clock);
  }

  /**
   * Waits for the next tick and runs it in setImmediate, so that after a stall the event loop reads
   * the sockets before we run the missed ticks.
   */
  #wait(clock: PlayoutClock): void {
    const run = () => setImmediate(() => this.#run(clock));
    if (!this.#sink.mayRest()) {
      setTimeout(run, Math.max(1, Math.ceil(clock.dueMs - performance.now())));
      return;
    }
    // Don't rest before the event loop's next turn, because this tick's packets will have left by
    // then.
    setImmediate(() => {
      this.#sleptSinceMs = performance.now();
      this.#rest.rest(clock.dueMs - this.#sleptSinceMs);
      run();
    });
  }

  #run(clock: PlayoutClock): void {
    this.#sleptSinceMs = undefined;
    if (this.#sink.isIdle()) {
      this.#clock = undefined;
      return;
    }
    const nowMs = performance.now();
    const lateMs = nowMs - clock.dueMs;
    this.#maxLateMs = Math.max(this.#maxLateMs, lateMs);
    const hasCaughtUp = clock.run(nowMs, (transmit, dueMs) => {
      if (!transmit) this.#ticksLate += 1;
      this.#sink.tick(transmit, dueMs);
    });
    this.#sink.ran(lateMs, hasCaughtUp);
    if (hasCaughtUp) this.#wait(clock);
    else setImmediate(() => this.#run(clock));
  }
}
