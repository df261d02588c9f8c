// Keeps the gateway from hearing its own audio, some of which the line returns, quieter and
// delayed. A frame that could be an echo is attenuated until it counts as neither voice nor tone. A
// frame louder than any echo must come from the far end. (This is Geigel's double-talk detector,
// applied to the power of frames.)

import { frameSamples } from './frame.ts';

/** 700 ms: a round trip by satellite, plus the buffers on the way. */
const keptFrames = 35;
/**
 * Bounds of the echo limit. Hybrids return the sound at least 12 dB quieter, and most lines return
 * nothing at all. On such lines the limit falls, so that the gate also passes a quiet far end.
 */
const maxEchoLimit = powerOf(-12);
const minEchoLimit = powerOf(-34);
/** A later echo may be louder than the measured one by this much. */
const allowance = powerOf(8);
/**
 * Number of frames that the gate takes for echo before it adapts the limit. Earlier, the first echo
 * may not have returned yet.
 */
const learningFrames = 75;
/** −60 dBFS: quieter sound is inaudible and is not used for learning. */
const audiblePower = powerOf(-60);
const attenuationShift = 5;

const fullScale = 32_768 ** 2 * frameSamples;

export class EchoGate {
  readonly #sent = new Float64Array(keptFrames);
  readonly #quieter = new Int16Array(frameSamples);
  #at = 0;
  #quietFrames = keptFrames;
  #heardFrames = 0;
  #loudestRatio = 0;
  #limit = maxEchoLimit;

  /**
   * Returns the next 20 ms as the analysis may hear it: the frame itself, or an attenuated copy in
   * a buffer that the next call overwrites. `sentPower` is the power of the audio sent in the
   * previous 20 ms (1: full scale).
   */
  pass(frame: Int16Array, sentPower: number): Int16Array {
    this.#sent[this.#at] = sentPower;
    this.#at = (this.#at + 1) % keptFrames;
    this.#quietFrames = sentPower > audiblePower ? 0 : this.#quietFrames + 1;
    // No echo can be on its way.
    if (this.#quietFrames >= keptFrames) return frame;
    const power = framePower(frame);
    const loudestSent = Math.max(...this.#sent);
    if (power > loudestSent * this.#limit) return frame;
    this.#learn(power / loudestSent);
    for (let index = 0; index < frameSamples; index += 1) {
      this.#quieter[index] = (frame[index] as number) >> attenuationShift;
    }
    return this.#quieter;
  }

  #learn(ratio: number): void {
    this.#heardFrames += 1;
    this.#loudestRatio = Math.max(this.#loudestRatio, ratio);
    if (this.#heardFrames < learningFrames) return;
    this.#limit = Math.min(maxEchoLimit, Math.max(minEchoLimit, this.#loudestRatio * allowance));
  }
}

function framePower(frame: Int16Array): number {
  let energy = 0;
  for (let index = 0; index < frame.length; index += 1) energy += (frame[index] as number) ** 2;
  return energy / fullScale;
}

function powerOf(db: number): number {
  return 10 ** (db / 10);
}
