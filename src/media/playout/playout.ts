// The 20 ms clock of a worker. Sessions are spread over four phases, 5 ms apart, so that what hundreds of bots and their callers say
// to each other does not wait for all the others; where no bot and no caller waits, the four step together, once in 20 or 40 ms. Driven
// by a monotonic clock from outside: a late call makes up for every step it missed, since the count of frames is the clock of detection.

export const tickMs = 20;
export const phases = 4;
const stepMs = tickMs / phases;
/** Three packets in a row fill a far end's jitter buffer again; more would only overflow it. */
const maxTransmitLateMs = 60;
/** 200 ms of steps in one go; then the sockets get their turn, however late the clock is. */
const maxStepsAtOnce = 40;

/** 0: each phase for itself, every 5 ms. Otherwise all four together, so many ticks at a time, when the turn of the last one has come. */
export type Pace = 0 | 1 | 2;

/** By what the sessions of a worker are at. */
export function paceOf(sessions: {
  /** What is relayed goes on at once. */
  readonly areBridged: boolean;
  /** A bot is connected in as few turns of the loop as it takes. */
  readonly haveBot: boolean;
  readonly areHurried: () => boolean;
  /** Silence is sent in every tick: two packets in a row each 40 ms would be jitter at the far end. */
  readonly sendAllSilence: boolean;
}): Pace {
  if (sessions.areBridged || sessions.haveBot) return 0;
  return sessions.sendAllSilence || sessions.areHurried() ? 1 : 2;
}

/** `ticks` of 20 ms have passed for the sessions of this phase. `transmit` is false where what is sent would only make a burst. */
export type PlayoutStep = (phase: number, ticks: number, transmit: boolean) => void;

export class PlayoutClock {
  readonly #startMs: number;
  #steps = 0;

  constructor(nowMs: number) {
    this.#startMs = nowMs;
  }

  /** When the next step is due, at this pace. */
  nextMs(pace: Pace): number {
    return this.#startMs + this.#nextSteps(pace) * stepMs;
  }

  /** Runs the steps that are due, a bounded number of them. False: more are due. */
  run(nowMs: number, pace: Pace, step: PlayoutStep): boolean {
    for (let run = 0; run < maxStepsAtOnce; ) {
      const dueMs = this.nextMs(pace);
      if (dueMs > nowMs) return true;
      const transmit = nowMs - dueMs <= maxTransmitLateMs;
      const before = this.#steps;
      this.#advance(this.#nextSteps(pace), (phase, ticks) => step(phase, ticks, transmit));
      run += this.#steps - before;
    }
    return this.nextMs(pace) > nowMs;
  }

  #nextSteps(pace: Pace): number {
    const size = Math.max(1, pace * phases);
    return this.#steps - (this.#steps % size) + size;
  }

  /** Several ticks session by session: what the first brings into the processor's caches, the next finds there. */
  #advance(toSteps: number, step: (phase: number, ticks: number) => void): void {
    while (this.#steps < toSteps) {
      const phase = this.#steps % phases;
      const ticks = phase === 0 ? Math.floor((toSteps - this.#steps) / phases) : 0;
      if (ticks === 0) {
        this.#steps += 1;
        step(phase, 1);
        continue;
      }
      this.#steps += ticks * phases;
      for (let each = 0; each < phases; each += 1) step(each, ticks);
    }
  }
}
