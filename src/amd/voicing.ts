// How periodic a frame is: voices are, keyboards, cars, rooms and crowds are not, or hardly. The highest normalised
// autocorrelation over the pitches of voices, on a signal reduced to 4 kHz that keeps the frame before.

import { frameSamples } from './frame.ts';

const reduction = 2;
const frameLength = frameSamples / reduction;
/** 400 to 73 Hz at 4 kHz. */
const shortestLag = 10;
const longestLag = 55;
/** 25 ms: two periods of a low voice. */
const windowLength = 100;
/** Every second product is enough for an estimate, at half the price. */
const stride = 2;
const windowStart = 2 * frameLength - windowLength;

export type Voicing = {
  /** Every frame in order, or the history is wrong. */
  push(frame: Int16Array): void;
  /** Of the last frame, 0 to 1. Costs much more than `push`: asked only where the level suggests speech. */
  measure(): number;
};

export function createVoicing(): Voicing {
  const signal = new Float64Array(2 * frameLength);
  return {
    push(frame) {
      signal.copyWithin(0, frameLength);
      for (let index = 0; index < frameLength; index += 1) {
        const at = reduction * index;
        signal[frameLength + index] = (frame[at] ?? 0) + (frame[at + 1] ?? 0);
      }
    },
    measure() {
      const own = energy(signal, windowStart);
      if (own === 0) return 0;
      let best = 0;
      for (let lag = shortestLag; lag <= longestLag; lag += 1) {
        const product = correlation(signal, lag);
        if (product <= 0) continue;
        const similarity = (product * product) / (own * energy(signal, windowStart - lag));
        if (similarity > best) best = similarity;
      }
      return Math.sqrt(best);
    },
  };
}

function correlation(signal: Float64Array, lag: number): number {
  let sum = 0;
  for (let index = windowStart; index < 2 * frameLength; index += stride) {
    sum += (signal[index] ?? 0) * (signal[index - lag] ?? 0);
  }
  return sum;
}

function energy(signal: Float64Array, start: number): number {
  let sum = 0;
  for (let index = start; index < start + windowLength; index += stride) {
    const value = signal[index] ?? 0;
    sum += value * value;
  }
  return sum;
}
