// How periodic a frame is: voices are, keyboards, cars, rooms and crowds are not, or hardly. The highest normalised
// autocorrelation over the pitches of voices, on a signal reduced to 4 kHz that keeps the frame before.

import { frameSamples } from './frame.ts';

const reduction = 2;
const frameLength = frameSamples / reduction;
const signalLength = 2 * frameLength;
/** 400 to 73 Hz at 4 kHz. */
const shortestLag = 10;
const longestLag = 55;
/** 25 ms: two periods of a low voice. */
const windowLength = 100;
/** Every second product is enough for an estimate, at half the price. */
const stride = 2;
const windowStart = signalLength - windowLength;
/** Vowels reach 0.9; keyboards, cars and rooms stay under 0.6 nearly always, through a GSM codec too. */
const voicedFrom = 0.62;
const neededShare = voicedFrom * voicedFrom;

export type Voicing = {
  /** Every frame in order, or the history is wrong. */
  push(frame: Int16Array): void;
  /** Of the last frame. Costs much more than `push`: asked only where the level suggests speech. */
  isVoiced(): boolean;
};

export function createVoicing(): Voicing {
  const signal = new Float64Array(signalLength);
  /** A voice holds its pitch for a few frames: looked at first, and mostly last. */
  let pitchLag = shortestLag;

  return {
    push(frame) {
      signal.copyWithin(0, frameLength);
      for (let index = 0; index < frameLength; index += 1) {
        const at = reduction * index;
        signal[frameLength + index] = (frame[at] ?? 0) + (frame[at + 1] ?? 0);
      }
    },
    isVoiced() {
      const needed = neededShare * energy(signal, windowStart);
      if (needed === 0) return false;
      if (repeats(signal, pitchLag, needed)) return true;
      for (let lag = shortestLag; lag <= longestLag; lag += 1) {
        if (!repeats(signal, lag, needed)) continue;
        pitchLag = lag;
        return true;
      }
      return false;
    },
  };
}

/** Is the signal similar enough to itself one lag before? Cauchy and Schwarz without the square root. */
function repeats(signal: Float64Array, lag: number, needed: number): boolean {
  const product = correlation(signal, lag);
  return product > 0 && product * product >= needed * energy(signal, windowStart - lag);
}

function correlation(signal: Float64Array, lag: number): number {
  let sum = 0;
  for (let index = windowStart; index < signalLength; index += stride) {
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
