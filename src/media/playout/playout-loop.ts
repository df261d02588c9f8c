// Runs a worker's playout clock while it has sessions: waits for each step, and makes up for those that it missed.

import type { ThreadRest } from '../../lib/threads/thread-rest.ts';
import { type Pace, PlayoutClock, type PlayoutStep } from './playout.ts';

export type PlayoutLoopSink = {
  readonly step: PlayoutStep;
  /** No session needs the clock any more, until `start`. */
  isIdle(): boolean;
  /**
   * 0 where something that comes in has to be looked at before its call's next step. Otherwise the thread stands still for one tick or
   * two: each time that it wakes, it finds the processor's caches full of other threads' work.
   */
  pace(): Pace;
  /**
   * Steps were run, `lateMs` after the first of them was due. If the clock has not caught up, more
   * steps follow when the sockets have been read.
   */
  ran(lateMs: number, hasCaughtUp: boolean): void;
};

export class PlayoutLoop {
  readonly #sink: PlayoutLoopSink;
  readonly #rest: Pick<ThreadRest, 'rest'>;
  #clock: PlayoutClock | undefined;
  /** What is waited for. */
  #dueMs = 0;
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

  /** Of 20 ms: those that came too late to send. */
  get ticksLate(): number {
    return this.#ticksLate;
  }

  start(): void {
    if (this.#clock !== undefined) return;
    this.#clock = new PlayoutClock(performance.now());
    this.#wait(this.#clock);
  }

  /** Always by way of setImmediate: after a stall, what the sockets hold is read before its time is said to be over. */
  #wait(clock: PlayoutClock): void {
    // In a turn of its own: by then, what the step has sent is out.
    const pace = this.#sink.pace();
    if (pace > 0) setImmediate(() => this.#restUntilStep(clock, pace));
    else {
      this.#dueMs = clock.nextMs(pace);
      const waitMs = Math.max(1, Math.ceil(this.#dueMs - performance.now()));
      setTimeout(() => setImmediate(() => this.#run(clock)), waitMs);
    }
  }

  #restUntilStep(clock: PlayoutClock, pace: Pace): void {
    this.#dueMs = clock.nextMs(pace);
    this.#rest.rest(this.#dueMs - performance.now());
    setImmediate(() => this.#run(clock));
  }

  #run(clock: PlayoutClock): void {
    if (this.#sink.isIdle()) {
      this.#clock = undefined;
      return;
    }
    const nowMs = performance.now();
    const lateMs = nowMs - this.#dueMs;
    this.#maxLateMs = Math.max(this.#maxLateMs, lateMs);
    const caughtUp = clock.run(nowMs, this.#sink.pace(), (phase, ticks, transmit) => {
      if (phase === 0 && !transmit) this.#ticksLate += ticks;
      this.#sink.step(phase, ticks, transmit);
    });
    this.#sink.ran(lateMs, caughtUp);
    if (caughtUp) this.#wait(clock);
    else setImmediate(() => this.#run(clock));
  }
}
