// A worker's playout clock. Every session ticks every 20 ms. If the clock is late, it makes up for
// missed ticks, because detection measures time by counting frames. Before it does, it lets the
// sockets deliver the packets from that period.

import type { ThreadRest } from '../../lib/threads/thread-rest.ts';

export const tickMs = 20;
/** A burst of three packets refills the far end's jitter buffer. Any more would overflow it. */
const maxTransmitLateMs = 60;
/**
 * Even if the clock is much later than this, we read the sockets after every 200 ms worth of ticks.
 */
const maxTicksPerRun = 10;

/** Counts the ticks of a monotonic clock, which the caller reads, without drifting from it. */
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
   * Runs the ticks that are due, up to `maxTicksPerRun`, and returns false if more are due.
   * `transmit` is false if the tick is so late that its packets would only add to a burst.
   */
  run(nowMs: number, tick: (transmit: boolean) => void): boolean {
    for (let ticks = 0; ticks < maxTicksPerRun && this.#dueMs <= nowMs; ticks += 1) {
      const transmit = nowMs - this.#dueMs <= maxTransmitLateMs;
      this.#dueMs += tickMs;
      tick(transmit);
    }
    return this.#dueMs > nowMs;
  }
}

export type PlayoutLoopSink = {
  tick(transmit: boolean): void;
  /** Whether there are no sessions. If so, the clock stops until the next `start`. */
  isIdle(): boolean;
  /**
   * Returns how many ticks all input can wait. Meanwhile the thread sleeps instead of waking up for
   * each packet, which saves a seventh of the CPU that a call with detection needs (at 5 calls/s).
   * Sleeping for two ticks halves the number of reads that find no packet, which saves 250 system
   * calls in a 10 s call. A message from the main thread ends the sleep.
   */
  restTicks(): 0 | 1 | 2;
  /**
   * Called after a run of ticks. The first of them ran `lateMs` after its planned time. If the
   * clock hasn't caught up, more ticks follow once the sockets have been read.
   */
  ran(lateMs: number, hasCaughtUp: boolean): void;
};

/** Runs the clock while the worker has sessions. */
export class PlayoutLoop {
  readonly #sink: PlayoutLoopSink;
  readonly #rest: Pick<ThreadRest, 'rest'>;
  #clock: PlayoutClock | undefined;
  /**
   * When the loop plans to run: as soon as the clock is due, or one tick later if it rests for two
   * ticks.
   */
  #wakeMs = 0;
  #maxLateMs = 0;
  #ticksLate = 0;

  constructor(sink: PlayoutLoopSink, rest: Pick<ThreadRest, 'rest'>) {
    this.#sink = sink;
    this.#rest = rest;
  }

  /** The clock's longest delay so far, in milliseconds. */
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
   * Waits for the next tick and runs it in setImmediate. This way the event loop reads the sockets
   * after a stall, before we run the missed ticks.
   */
  #wait(clock: PlayoutClock): void {
    const run = () => setImmediate(() => this.#run(clock));
    const restTicks = this.#sink.restTicks();
    this.#wakeMs = clock.dueMs + Math.max(0, restTicks - 1) * tickMs;
    if (restTicks === 0) {
      setTimeout(run, Math.max(1, Math.ceil(this.#wakeMs - performance.now())));
      return;
    }
    // Rest in the event loop's next turn, because this tick's packets have left by then.
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
