// The clock of a worker: every session ticks once in 20 ms. A clock that is late makes up for each tick that it missed, because the
// count of frames is the clock of detection; what is heard is read from the sockets before its time counts as over.

import type { ThreadRest } from '../../lib/threads/thread-rest.ts';

export const tickMs = 20;
/** Three packets in a row fill a far end's jitter buffer again; more would only overflow it. */
const maxTransmitLateMs = 60;
/** After 200 ms of ticks the sockets get their turn, however late the clock is. */
const maxTicksAtOnce = 10;

/** Counts ticks by a monotonic clock from outside, and does not drift from it. */
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
   * Runs the ticks that are due, a bounded number of them. Returns false if more are due. `transmit` is false if what is sent would
   * only make a burst.
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
  /** No session needs the clock until the next `start`. */
  isIdle(): boolean;
  /**
   * For how many ticks all that comes in can wait. Then the thread stands still instead of waking for each packet, which takes a
   * seventh off the CPU of a call with detection (at 5 calls/s). Two ticks at once halve the reads that find no packet: 250 system
   * calls in a call of 10 s. A message of the main thread ends the rest.
   */
  restTicks(): 0 | 1 | 2;
  /**
   * Ticks were run, `lateMs` after the first of them was due. If the clock has not caught up, more
   * ticks follow when the sockets have been read.
   */
  ran(lateMs: number, hasCaughtUp: boolean): void;
};

/** Runs the clock while the worker has sessions. */
export class PlayoutLoop {
  readonly #sink: PlayoutLoopSink;
  readonly #rest: Pick<ThreadRest, 'rest'>;
  #clock: PlayoutClock | undefined;
  /** When the loop means to run: a tick later than the clock if it rests for two. */
  #wakeMs = 0;
  #maxLateMs = 0;
  #ticksLate = 0;

  constructor(sink: PlayoutLoopSink, rest: Pick<ThreadRest, 'rest'>) {
    this.#sink = sink;
    this.#rest = rest;
  }

  /** The latest that the clock ever was. */
  get maxLateMs(): number {
    return this.#maxLateMs;
  }

  /** Ticks that came too late to send. */
  get ticksLate(): number {
    return this.#ticksLate;
  }

  start(): void {
    if (this.#clock !== undefined) return;
    this.#clock = new PlayoutClock(performance.now());
    this.#wait(this.#clock);
  }

  /** Ends in setImmediate: after a stall, what the sockets hold is read before its time counts as over. */
  #wait(clock: PlayoutClock): void {
    const run = () => setImmediate(() => this.#run(clock));
    const restTicks = this.#sink.restTicks();
    this.#wakeMs = clock.dueMs + Math.max(0, restTicks - 1) * tickMs;
    if (restTicks === 0) {
      setTimeout(run, Math.max(1, Math.ceil(this.#wakeMs - performance.now())));
      return;
    }
    // In a turn of its own: by then, what the tick has sent is out.
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
