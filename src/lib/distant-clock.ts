// What a clock elsewhere says, learned from answers that carry its time. It was read somewhere between question and answer: the
// quickest answer knows best (as in RFC 5905, section 10), whatever those after it had to wait for.

export type ClockAnswer = {
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
  readonly clockMs: number;
};

/** So much worse an answer becomes while it ages: more than clocks drift, so that one that was set is followed in seconds. */
const agingMsPerMs = 1 / 1_000;

export class DistantClock {
  #best:
    | { readonly aheadMs: number; readonly roundTripMs: number; readonly atMs: number }
    | undefined;

  learn({ askedAtMs, answeredAtMs, clockMs }: ClockAnswer): void {
    const roundTripMs = answeredAtMs - askedAtMs;
    const best = this.#best;
    if (
      best === undefined ||
      roundTripMs <= best.roundTripMs + (answeredAtMs - best.atMs) * agingMsPerMs
    ) {
      const aheadMs = clockMs - (askedAtMs + answeredAtMs) / 2;
      this.#best = { aheadMs, roundTripMs, atMs: answeredAtMs };
    }
  }

  /** The instant here at which it says `distantMs`. @throws Error while nothing was learned */
  hereMs(distantMs: number): number {
    if (this.#best === undefined) throw new Error('nothing is known of the other clock');
    return distantMs - this.#best.aheadMs;
  }
}
