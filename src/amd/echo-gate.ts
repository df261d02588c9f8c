// Keeps the gateway from hearing itself, because the line may return some of our audio, quieter and
// delayed. We attenuate every frame that could be an echo so much that it counts neither as a voice
// nor as a tone. A frame that's louder than any echo must come from the far end of the call. (This
// is Geigel's double-talk detector, applied to frame power.)

import { frameSamples } from './frame.ts';

/** 700 ms, which covers a satellite round trip and the buffers along the way. */
const keptFrames = 35;
/**
 * Bounds for the echo limit. Hybrids return our audio at least 12 dB quieter, but most lines don't
 * return any audio at all. On those lines we lower the limit, so that the gate lets a quiet callee
 * through.
 */
const maxEchoLimit = powerOf(-12);
const minEchoLimit = powerOf(-34);
/** Later echoes may exceed the measured echo by this much. */
const allowance = powerOf(8);
/**
 * The gate adapts its limit after this many frames that may have contained an echo. Before that,
 * the first echo could still be on its way.
 */
const learningFrames = 75;
/** −60 dBFS. We don't adapt to anything quieter, because it's inaudible. */
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
   * Returns the next 20 ms to analyse, which is either the frame itself or an attenuated copy. The
   * copy's buffer is overwritten by the next call. `sentPower` is the power of the audio that we
   * sent in the previous 20 ms (full scale is 1).
   */
  pass(frame: Int16Array, sentPower: number): Int16Array {
    this.#sent[this.#at] = sentPower;
    this.#at = (this.#at + 1) % keptFrames;
    this.#quietFrames = sentPower > audiblePower ? 0 : this.#quietFrames + 1;
    // We haven't sent anything recently, so this frame can't contain an echo.
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
