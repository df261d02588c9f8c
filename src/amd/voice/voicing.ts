// Decides whether a frame is periodic, like a voice. The noise of keyboards, cars, rooms and crowds
// hardly ever is. We downsample the signal, including part of the previous frame, to 4 kHz and
// compute the highest normalised autocorrelation over the range of pitches that voices use.

import { frameSamples } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const reduction = 2;
const signalLength = (2 * frameSamples) / reduction;
/** 400 to 73 Hz at 4 kHz. The number of lags is even. */
const minLag = 10;
const maxLag = 55;
/** 25 ms, which is two periods of a low voice. */
const windowLength = 100;
/** Using every second product gives a good enough estimate at half the cost. */
const stride = 2;
const windowStart = signalLength - windowLength;
const signalStart = windowStart - maxLag - stride;
/**
 * Vowels reach 0.9. Keyboards, cars and rooms nearly always remain below 0.6, even through a GSM
 * codec.
 */
const voicedFrom = 0.62;
const neededShare = voicedFrom * voicedFrom;

/** Scratch memory for the frame that's being analysed. All calls share it. */
const signal = new Float64Array(signalLength);

export type Voicing = {
  /**
   * Returns true if the latest frame is voiced. This is expensive, so only call it if the level
   * suggests speech.
   */
  isVoiced(): boolean;
};

export function createVoicing(recent: RecentAudio): Voicing {
  /**
   * The last lag that matched. A voice's pitch hardly changes for a few frames, so we try this lag
   * first, and usually don't need any others.
   */
  let pitchLag = minLag;

  return {
    isVoiced() {
      reduce(recent);
      const needed = neededShare * energy(windowStart);
      if (needed === 0) return false;
      if (isEnough(correlation(pitchLag), needed * energy(windowStart - pitchLag))) return true;
      const lag = repeatingLag(needed);
      if (lag === undefined) return false;
      pitchLag = lag;
      return true;
    },
  };
}

function reduce({ samples, end }: RecentAudio): void {
  const start = end - reduction * signalLength;
  for (let index = signalStart; index < signalLength; index += 1) {
    const at = start + reduction * index;
    signal[index] = (samples[at & ringMask] ?? 0) + (samples[(at + 1) & ringMask] ?? 0);
  }
}

/**
 * Returns the shortest lag at which the signal is similar enough to itself. We process two lags per
 * iteration, because they share half of the work.
 */
function repeatingLag(needed: number): number | undefined {
  let energyBefore = energy(windowStart - minLag);
  let nextEnergy = energy(windowStart - minLag - 1);
  for (let lag = minLag; lag < maxLag; lag += 2) {
    let product = 0;
    let nextProduct = 0;
    for (let index = windowStart; index < signalLength; index += stride) {
      const value = signal[index] ?? 0;
      product += value * (signal[index - lag] ?? 0);
      nextProduct += value * (signal[index - lag - 1] ?? 0);
    }
    if (isEnough(product, needed * energyBefore)) return lag;
    if (isEnough(nextProduct, needed * nextEnergy)) return lag + 1;
    energyBefore += energyMoved(windowStart - lag - stride);
    nextEnergy += energyMoved(windowStart - lag - 1 - stride);
  }
  return undefined;
}

/** Compares according to Cauchy–Schwarz, but without the square root. */
function isEnough(product: number, needed: number): boolean {
  return product > 0 && product * product >= needed;
}

function correlation(lag: number): number {
  let sum = 0;
  for (let index = windowStart; index < signalLength; index += stride) {
    sum += (signal[index] ?? 0) * (signal[index - lag] ?? 0);
  }
  return sum;
}

function energy(start: number): number {
  let sum = 0;
  for (let index = start; index < start + windowLength; index += stride) {
    const value = signal[index] ?? 0;
    sum += value * value;
  }
  return sum;
}

/**
 * Returns by how much the energy of the window at `start` exceeds the energy of the window one
 * stride later. The result is exact because samples are integers.
 */
function energyMoved(start: number): number {
  const gained = signal[start] ?? 0;
  const lost = signal[start + windowLength] ?? 0;
  return gained * gained - lost * lost;
}
