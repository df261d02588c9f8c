// Decides whether a frame is periodic, like a voice. Keyboards, cars, rooms and crowds are hardly
// ever periodic. We reduce the signal, including part of the previous frame, to 4 kHz and take the
// highest normalised autocorrelation over the pitches of voices.

import { frameSamples } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const reduction = 2;
const signalLength = (2 * frameSamples) / reduction;
/** 400 to 73 Hz at 4 kHz: an even number of lags. */
const minLag = 10;
const maxLag = 55;
/** 25 ms: two periods of a low voice. */
const windowLength = 100;
/** Every second product is enough for an estimate, at half the cost. */
const stride = 2;
const windowStart = signalLength - windowLength;
const signalStart = windowStart - maxLag - stride;
/**
 * Vowels reach 0.9. Keyboards, cars and rooms nearly always stay below 0.6, even through a GSM
 * codec.
 */
const voicedFrom = 0.62;
const neededShare = voicedFrom * voicedFrom;

/** Scratch memory for one frame at a time, shared by all calls. */
const signal = new Float64Array(signalLength);

export type Voicing = {
  /**
   * Returns true if the latest frame is voiced. This isn't cheap, so only call it if the level
   * suggests speech.
   */
  isVoiced(): boolean;
};

export function createVoicing(recent: RecentAudio): Voicing {
  /**
   * The lag that matched last. Voices hold their pitch for a few frames, so we try it first, and
   * usually that's enough.
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
 * Returns the shortest lag at which the signal is similar enough to itself. Two lags per iteration
 * share half of the work.
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

/** The Cauchy–Schwarz comparison without the square root. */
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
 * Returns how much more energy the window at `start` has than the window one stride later. The
 * difference is exact because samples are integers.
 */
function energyMoved(start: number): number {
  const gained = signal[start] ?? 0;
  const lost = signal[start + windowLength] ?? 0;
  return gained * gained - lost * lost;
}
