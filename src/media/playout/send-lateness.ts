// How late a worker's packets leave, in a histogram. A far end plays what it receives from a jitter
// buffer of some 40 ms, so people hear a gap if a packet leaves later than that.

/** Bins of 1 ms. A tick that's later than 60 ms sends nothing, and 300 calls take a few ms more. */
const binCount = 128;

export type SendLatenessCounts = {
  /** The packets that left from `n` up to `n + 1` ms late. The last bin has all later ones. */
  readonly packetsByMs: readonly number[];
  /** The lateness of all these packets, added up. */
  readonly sumMs: number;
};

export class SendLateness {
  readonly #packetsByMs = new Float64Array(binCount);
  #sumMs = 0;

  note(lateMs: number, packets: number): void {
    const bin = Math.min(binCount - 1, Math.max(0, Math.floor(lateMs)));
    this.#packetsByMs[bin] = (this.#packetsByMs[bin] as number) + packets;
    this.#sumMs += Math.max(0, lateMs) * packets;
  }

  read(): SendLatenessCounts {
    return { packetsByMs: [...this.#packetsByMs], sumMs: this.#sumMs };
  }
}

/** Adds the counts of several workers. */
export function addLateness(all: readonly SendLatenessCounts[]): SendLatenessCounts {
  return {
    packetsByMs: Array.from({ length: binCount }, (_, bin) =>
      all.reduce((total, { packetsByMs }) => total + (packetsByMs[bin] ?? 0), 0),
    ),
    sumMs: all.reduce((total, { sumMs }) => total + sumMs, 0),
  };
}
