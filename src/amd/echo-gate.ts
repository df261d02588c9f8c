// Keeps the gateway from hearing its own audio: the line returns some of it, quieter and later. A
// frame that is no louder than an echo can be is attenuated so far that it counts as neither voice
// nor tone. A louder frame comes from the far end. (This is Geigel's double-talk detector, applied
// to the power of frames.)

import { frameSamples } from './frame.ts';

/** 700 ms: the round trip, by satellite, and the buffers on the way. */
const keptFrames = 35;
/**
 * Upper and lower bound of the echo limit. Hybrids return the sound at least 12 dB quieter, and
 * most lines return nothing at all. On such lines a lower limit lets the gate pass a quieter far
 * end.
 */
const loudestEcho = powerOf(-12);
const quietestEcho = powerOf(-34);
/** A later echo may be louder than the measured one by this much. */
const allowance = powerOf(8);
/**
 * Frames with sound of the gateway that must pass before the limit is adapted. An echo may not have
 * returned earlier.
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
  #limit = loudestEcho;

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
    this.#limit = Math.min(loudestEcho, Math.max(quietestEcho, this.#loudestRatio * allowance));
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
