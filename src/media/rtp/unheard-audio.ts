// Counts the audio that the far end sent and a call's listeners never heard because this process
// was late: it didn't get the CPU, or was suspended. Losses in the network aren't counted.
//
// After a stall, the sockets hold the audio that arrived in the meantime, and the clock makes up
// for the missed ticks. Two kinds of audio are lost on the way:
// - The jitter buffer skips the oldest audio if more than 600 ms arrive at once.
// - The kernel drops packets once a socket's buffer is full, which takes about 5 s at Linux's
//   default size. We then see a gap, as after a loss in the network, but in ticks that run late.

import { tickMs } from '../playout/playout.ts';
import { frameSamples, type PlayoutCounts } from './jitter-buffer.ts';

/** Packets that are on their way while the clock catches up may be missing for this long. */
const recoveryFrames = 3;
const samplesPerMs = frameSamples / tickMs;

export class UnheardAudio {
  readonly #counts: Pick<PlayoutCounts, 'skippedSamples'>;
  #skippedBefore = 0;
  /** Ticks until a missing frame counts as lost in the network again. */
  #recoveryLeft = 0;
  /** Skipped samples, which were counted, and for which no frame has been missing yet. */
  #skippedSamples = 0;

  constructor(counts: Pick<PlayoutCounts, 'skippedSamples'>) {
    this.#counts = counts;
  }

  /**
   * Call this for each tick, after the frame was taken. `isMissing` is true if the frame is
   * missing although the far end has begun to send.
   *
   * @returns milliseconds of audio that have gone unheard since the last tick
   */
  tick(isInTime: boolean, isMissing: boolean): number {
    const skipped = this.#counts.skippedSamples - this.#skippedBefore;
    this.#skippedBefore = this.#counts.skippedSamples;
    this.#recoveryLeft = isInTime ? Math.max(0, this.#recoveryLeft - 1) : recoveryFrames;
    if (this.#recoveryLeft === 0) {
      this.#skippedSamples = 0;
      return 0;
    }
    this.#skippedSamples += skipped;
    return skipped / samplesPerMs + (isMissing ? this.#missing() : 0);
  }

  /** Skipped audio is missing at the end of the stall. It must not be counted twice. */
  #missing(): number {
    if (this.#skippedSamples < frameSamples) return tickMs;
    this.#skippedSamples -= frameSamples;
    return 0;
  }
}
