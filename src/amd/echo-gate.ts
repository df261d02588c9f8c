// Keeps what we send ourselves from being heard: the line gives some of it back, quieter and later. What comes in no louder than
// an echo may be is turned down so far that it passes for no voice and no tone; what is louder is the far end's (Geigel's
// detector of double talk, by the power of frames).

import { frameSamples } from './frame.ts';

/** 700 ms: the way there and back, by satellite, and the buffers on it. */
const keptFrames = 35;
/** Hybrids give back 12 dB less, and most lines nothing at all: then a quieter far end is heard too. */
const loudestEcho = powerOf(-12);
const quietestEcho = powerOf(-34);
/** What was measured may be this much louder another time. */
const allowance = powerOf(8);
/** Of our sound: before that an echo may not have come back yet. */
const learningFrames = 75;
/** Below −60 dBFS nothing is heard anyway, and nothing learnt. */
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
   * Returns the next 20 ms as they may be listened to: the frame itself, or one that is used again.
   * `sentPower` is the power of what was sent in the 20 ms before (1: full scale).
   */
  pass(frame: Int16Array, sentPower: number): Int16Array {
    this.#sent[this.#at] = sentPower;
    this.#at = (this.#at + 1) % keptFrames;
    this.#quietFrames = sentPower > audiblePower ? 0 : this.#quietFrames + 1;
    // Nothing of ours is on its way.
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
