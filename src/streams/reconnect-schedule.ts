// When a bot is tried, and for how long, in ticks of 20 ms: the stream has no clock but that of its audio.

const ticksASecond = 50;

/** At the answer the person waits: the next try comes soon, and after five seconds it is no call any more. */
const firstWaits = [0.5, 1, 2];
const firstLimitTicks = 5 * ticksASecond;
/** In the middle of a call a bot that is deployed anew takes a while, and many calls come back to it. */
const againWaits = [1, 2, 4];
const againLimitTicks = 30 * ticksASecond;
/** A connection that lasted so long was a good one: the next break is a new one. */
const goodTicks = 10 * ticksASecond;
/** One try. */
export const longestTryTicks = 5 * ticksASecond;

export class ReconnectSchedule {
  #waits = firstWaits;
  #limitTicks = firstLimitTicks;
  #tries = 0;
  #endTick = 0;

  /** The call is answered: the first try is now. */
  begin(tick: number): void {
    this.#endTick = tick + this.#limitTicks;
  }

  /** A connection that was up since `openTick` is lost. */
  broke(openTick: number, tick: number): void {
    const isFirst = this.#waits === firstWaits;
    this.#waits = againWaits;
    this.#limitTicks = againLimitTicks;
    if (!isFirst && tick - openTick < goodTicks) return;
    this.#tries = 0;
    this.#endTick = tick + this.#limitTicks;
  }

  /** The tick of the next try; undefined: there is none. */
  next(tick: number): number | undefined {
    const wait = this.#waits[Math.min(this.#tries, this.#waits.length - 1)] ?? 0;
    this.#tries += 1;
    const at = tick + wait * ticksASecond;
    return at < this.#endTick ? at : undefined;
  }

  /** When a try that begins now is given up. */
  limitOf(tick: number): number {
    return Math.min(tick + longestTryTicks, this.#endTick);
  }
}
