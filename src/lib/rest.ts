// Sweeps that find nothing may rest, where nothing can come to be there without this process knowing of it: until something
// wakes them, and never for longer than a bound, so that a wake that was forgotten costs a delay and nothing else.

export class Rest {
  readonly #longestMs: number;
  readonly #nowMs: () => number;
  #untilMs = Number.NEGATIVE_INFINITY;
  #wakes = 0;

  /** `longestMs` 0: there is no rest, because others write where the sweeps look. */
  constructor(longestMs: number, nowMs: () => number = () => performance.now()) {
    this.#longestMs = longestMs;
    this.#nowMs = nowMs;
  }

  /** There may be something to find, now that it is stored: before, a sweep could look, miss it, and rest. */
  wake(): void {
    this.#wakes += 1;
    this.#untilMs = Number.NEGATIVE_INFINITY;
  }

  /** Does a sweep that tells whether there is anything left for the next one; false without a sweep while it rests. */
  async unlessResting(work: () => Promise<boolean>): Promise<boolean> {
    if (this.#nowMs() < this.#untilMs) return false;
    const wakesBefore = this.#wakes;
    const isAnythingLeft = await work();
    if (!isAnythingLeft && this.#wakes === wakesBefore)
      this.#untilMs = this.#nowMs() + this.#longestMs;
    return isAnythingLeft;
  }
}
