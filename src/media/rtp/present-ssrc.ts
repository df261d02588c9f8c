// Whose packets count at one address, where two senders may overlap (a forked or transferred call): one at a time.

import { sequenceDistance } from './rtp-packet.ts';

/**
 * The present sender must be silent for three frames before another SSRC from the same place takes over: of two at once, its packets
 * may both be about to be read.
 */
const silentFrames = 3;

export class PresentSsrc {
  readonly #onChange: () => void;
  #ssrc: number | undefined;
  #frames = 0;
  #candidate: number | undefined;
  #candidateSequence = 0;

  /** `onChange`: another sender has taken over. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** 20 ms have passed. */
  tick(): void {
    this.#frames += 1;
  }

  accept(ssrc: number, sequence: number): boolean {
    if (ssrc === this.#ssrc || this.#ssrc === undefined) {
      this.#take(ssrc);
      return true;
    }
    const confirmed =
      ssrc === this.#candidate && sequenceDistance(sequence, this.#candidateSequence) > 0;
    this.#candidate = ssrc;
    this.#candidateSequence = sequence;
    if (!confirmed || this.#frames < silentFrames) return false;
    this.#take(ssrc);
    this.#onChange();
    return true;
  }

  #take(ssrc: number): void {
    this.#ssrc = ssrc;
    this.#frames = 0;
    this.#candidate = undefined;
  }
}
