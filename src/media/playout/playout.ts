// The 20 ms clock of a worker. Sessions are spread over four phases, 5 ms apart, so that what hundreds of bots and their callers say
// to each other does not wait for all the others; where no bot waits, the four can have one step in common. Driven by a monotonic
// clock from outside: a late call makes up for every step it missed, since the count of frames is the clock of detection.

export const tickMs = 20;
export const phases = 4;
const stepMs = tickMs / phases;
/** Three packets in a row fill a far end's jitter buffer again; more would only overflow it. */
const maxTransmitLateMs = 60;
/** 200 ms of steps in one go; then the sockets get their turn, however late the clock is. */
const maxStepsAtOnce = 40;

export class PlayoutClock {
  readonly #startMs: number;
  #steps = 0;

  constructor(nowMs: number) {
    this.#startMs = nowMs;
  }

  /** When the next step is due. `wholeTicks`: the phases step together, when the last one's turn has come. */
  nextMs(wholeTicks: boolean): number {
    const steps = wholeTicks ? this.#steps - (this.#steps % phases) + phases : this.#steps + 1;
    return this.#startMs + steps * stepMs;
  }

  /** Runs the steps that are due, a bounded number of them. False: more are due. */
  run(
    nowMs: number,
    wholeTicks: boolean,
    step: (phase: number, transmit: boolean) => void,
  ): boolean {
    for (let count = 0; count < maxStepsAtOnce; count += 1) {
      const dueMs = this.nextMs(wholeTicks);
      if (dueMs > nowMs) return true;
      const phase = this.#steps % phases;
      this.#steps += 1;
      step(phase, nowMs - dueMs <= maxTransmitLateMs);
    }
    return this.nextMs(wholeTicks) > nowMs;
  }
}
