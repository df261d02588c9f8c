// Decides whether a frame is periodic, like a voice. The noise of keyboards, cars, rooms and crowds
// hardly ever is. We downsample the signal, including part of the previous frame, to 4 kHz and
// compute the highest normalised autocorrelation over the range of pitches that voices use.

import { frameSamples } from '../frame.ts';
import { earlier, later, type RecentAudio, ringMask } from '../recent-audio.ts';

const reduction = 2;
const signalLength = (2 * frameSamples) / reduction;
/** 400 to 73 Hz at 4 kHz. */
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

const lagsAtOnce = 4;

// Scratch memory for the frame that's being analysed. All calls share it.
const signal = new Float64Array(signalLength);
const products = new Float64Array(lagsAtOnce);

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

function reduce({ pairs, end }: RecentAudio): void {
  const start = end - signalLength;
  for (let index = signalStart; index < signalLength; index += 1) {
    const pair = pairs[(start + index) & ringMask] as number;
    signal[index] = earlier(pair) + later(pair);
  }
}

/** Returns the shortest lag at which the signal is similar enough to itself. */
function repeatingLag(needed: number): number | undefined {
  let energyNow = energy(windowStart - minLag);
  let energyNext = energy(windowStart - minLag - 1);
  for (let lag = minLag; lag <= maxLag; lag += 1) {
    const offset = (lag - minLag) % lagsAtOnce;
    if (offset === 0) correlateFrom(lag);
    if (isEnough(products[offset] as number, needed * energyNow)) return lag;
    const energyAfterNext = energyNow + energyMoved(windowStart - lag - stride);
    energyNow = energyNext;
    energyNext = energyAfterNext;
  }
  return undefined;
}

/**
 * Computes the correlations at four lags at once, because they share work and their additions don't
 * depend on each other.
 */
function correlateFrom(lag: number): void {
  let product0 = 0;
  let product1 = 0;
  let product2 = 0;
  let product3 = 0;
  let before2 = signal[windowStart - lag - 2] as number;
  let before3 = signal[windowStart - lag - 3] as number;
  for (let index = windowStart; index < signalLength; index += stride) {
    const value = signal[index] as number;
    const before0 = signal[index - lag] as number;
    const before1 = signal[index - lag - 1] as number;
    product0 += value * before0;
    product1 += value * before1;
    product2 += value * before2;
    product3 += value * before3;
    // After a stride of two, these are what the two longer lags need.
    before2 = before0;
    before3 = before1;
  }
  products[0] = product0;
  products[1] = product1;
  products[2] = product2;
  products[3] = product3;
}

/** Compares according to Cauchy–Schwarz, but without the square root. */
function isEnough(product: number, needed: number): boolean {
  return product > 0 && product * product >= needed;
}

function correlation(lag: number): number {
  let even = 0;
  let odd = 0;
  for (let index = windowStart; index < signalLength; index += 2 * stride) {
    const next = index + stride;
    even += (signal[index] as number) * (signal[index - lag] as number);
    odd += (signal[next] as number) * (signal[next - lag] as number);
  }
  return even + odd;
}

function energy(start: number): number {
  let even = 0;
  let odd = 0;
  for (let index = start; index < start + windowLength; index += 2 * stride) {
    const value = signal[index] as number;
    const next = signal[index + stride] as number;
    even += value * value;
    odd += next * next;
  }
  return even + odd;
}

/**
 * Returns by how much the energy of the window at `start` exceeds the energy of the window one
 * stride later. The result is exact because samples are integers.
 */
function energyMoved(start: number): number {
  const gained = signal[start] as number;
  const lost = signal[start + windowLength] as number;
  return gained * gained - lost * lost;
}
