// Runs a worker's playout clock while it has sessions: waits for each step, and makes up for those that it missed.

import type { ThreadRest } from '../../lib/threads/thread-rest.ts';
import { PlayoutClock } from './playout.ts';

export type PlayoutLoopSink = {
  /** `transmit` is false where the clock is so late that what is sent would only make a burst. */
  step(phase: number, transmit: boolean): void;
  /** No session needs the clock any more, until `start`. */
  isIdle(): boolean;
  /**
   * Nothing that comes in has to be looked at before its call's next step. Then the thread stands still for a whole tick: each time
   * that it wakes, it finds the processor's caches full of other threads' work.
   */
  mayRest(): boolean;
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
    if (this.#sink.mayRest()) setImmediate(() => this.#restUntilStep(clock));
    else {
      this.#dueMs = clock.nextMs(false);
      const waitMs = Math.max(1, Math.ceil(this.#dueMs - performance.now()));
      setTimeout(() => setImmediate(() => this.#run(clock)), waitMs);
    }
  }

  #restUntilStep(clock: PlayoutClock): void {
    this.#dueMs = clock.nextMs(true);
    this.#rest.rest(this.#dueMs - performance.now());
    setImmediate(() => this.#run(clock));
  }

  #run(clock: PlayoutClock): void {
    if (this.#sink.isIdle()) {
      this.#clock = undefined;
      return;
    }
    const nowMs = performance.now();
    const wholeTicks = this.#sink.mayRest();
    this.#maxLateMs = Math.max(this.#maxLateMs, nowMs - this.#dueMs);
    const caughtUp = clock.run(nowMs, wholeTicks, (phase, transmit) => {
      if (phase === 0 && !transmit) this.#ticksLate += 1;
      this.#sink.step(phase, transmit);
    });
    if (caughtUp) this.#wait(clock);
    else setImmediate(() => this.#run(clock));
  }
}
