// The playout clock of a worker. Every session ticks every 20 ms. A late clock makes up for missed
// ticks, because detection measures time by counting frames. Before the clock runs missed ticks, it
// lets the sockets deliver the packets of that time.

import type { ThreadRest } from '../../lib/threads/thread-rest.ts';

export const tickMs = 20;
/** A burst of three packets refills the far end's jitter buffer. More packets would overflow it. */
const maxTransmitLateMs = 60;
/** Reads the sockets after 200 ms worth of ticks, however late the clock is. */
const maxTicksAtOnce = 10;

/** Counts ticks of a monotonic clock that the caller reads. Does not drift from it. */
export class PlayoutClock {
  #dueMs: number;

  constructor(nowMs: number) {
    this.#dueMs = nowMs + tickMs;
  }

  /** When the next tick is due. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /**
   * Runs the ticks that are due, up to `maxTicksAtOnce`, and returns false if more are due.
   * `transmit` is false if the tick is so late that its packets would only add to a burst.
   */
  run(nowMs: number, tick: (transmit: boolean) => void): boolean {
    for (let ticks = 0; ticks < maxTicksAtOnce && this.#dueMs <= nowMs; ticks += 1) {
      const transmit = nowMs - this.#dueMs <= maxTransmitLateMs;
      this.#dueMs += tickMs;
      tick(transmit);
    }
    return this.#dueMs > nowMs;
  }
}

export type PlayoutLoopSink = {
  tick(transmit: boolean): void;
  /** Whether there are no sessions. The clock then stops until the next `start`. */
  isIdle(): boolean;
  /**
   * Returns how many ticks all input can wait. The thread sleeps meanwhile instead of waking up for
   * each packet, which saves a seventh of the CPU of a call with detection (at 5 calls/s). Sleeping
   * for two ticks halves the reads that find no packet, which saves 250 system calls in a call of
   * 10 s. A message from the main thread ends the sleep.
   */
  restTicks(): 0 | 1 | 2;
  /**
   * Called after ticks ran, the first of them `lateMs` after its planned time. If the clock has not
   * caught up, more ticks follow after the sockets are read.
   */
  ran(lateMs: number, hasCaughtUp: boolean): void;
};

/** Runs the clock while the worker has sessions. */
export class PlayoutLoop {
  readonly #sink: PlayoutLoopSink;
  readonly #rest: Pick<ThreadRest, 'rest'>;
  #clock: PlayoutClock | undefined;
  /**
   * Time at which the loop plans to run: when the clock is due, or one tick later if it rests for
   * two ticks.
   */
  #wakeMs = 0;
  #maxLateMs = 0;
  #ticksLate = 0;

  constructor(sink: PlayoutLoopSink, rest: Pick<ThreadRest, 'rest'>) {
    this.#sink = sink;
    this.#rest = rest;
  }

  /** The longest delay of the clock so far, in milliseconds. */
  get maxLateMs(): number {
    return this.#maxLateMs;
  }

  /** Ticks that ran too late to send packets. */
  get ticksLate(): number {
    return this.#ticksLate;
  }

  start(): void {
    if (this.#clock !== undefined) return;
    this.#clock = new PlayoutClock(performance.now());
    this.#wait(this.#clock);
  }

  /**
   * Waits for the next tick and runs it in setImmediate, so that after a stall the sockets are read
   * before the missed ticks run.
   */
  #wait(clock: PlayoutClock): void {
    const run = () => setImmediate(() => this.#run(clock));
    const restTicks = this.#sink.restTicks();
    this.#wakeMs = clock.dueMs + Math.max(0, restTicks - 1) * tickMs;
    if (restTicks === 0) {
      setTimeout(run, Math.max(1, Math.ceil(this.#wakeMs - performance.now())));
      return;
    }
    // Rest in the next turn of the event loop, after the packets of this tick have left.
    setImmediate(() => {
      this.#rest.rest(this.#wakeMs - performance.now());
      run();
    });
  }

  #run(clock: PlayoutClock): void {
    if (this.#sink.isIdle()) {
      this.#clock = undefined;
      return;
    }
    const nowMs = performance.now();
    const lateMs = nowMs - this.#wakeMs;
    this.#maxLateMs = Math.max(this.#maxLateMs, lateMs);
    const hasCaughtUp = clock.run(nowMs, (transmit) => {
      if (!transmit) this.#ticksLate += 1;
      this.#sink.tick(transmit);
    });
    this.#sink.ran(lateMs, hasCaughtUp);
    if (hasCaughtUp) this.#wait(clock);
    else setImmediate(() => this.#run(clock));
  }
}
