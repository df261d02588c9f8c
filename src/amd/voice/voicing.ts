// How periodic a frame is: voices are, keyboards, cars, rooms and crowds are not, or hardly. The highest normalised
// autocorrelation over the pitches of voices, on a signal reduced to 4 kHz that reaches back into the frame before.

import { frameSamples } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const reduction = 2;
const signalLength = (2 * frameSamples) / reduction;
/** 400 to 73 Hz at 4 kHz: an even number of lags. */
const shortestLag = 10;
const longestLag = 55;
/** 25 ms: two periods of a low voice. */
const windowLength = 100;
/** Every second product is enough for an estimate, at half the price. */
const stride = 2;
const windowStart = signalLength - windowLength;
const signalStart = windowStart - longestLag - stride;
/** Vowels reach 0.9; keyboards, cars and rooms stay under 0.6 nearly always, through a GSM codec too. */
const voicedFrom = 0.62;
const neededShare = voicedFrom * voicedFrom;

/** For one look at a time, of whichever call. */
const signal = new Float64Array(signalLength);

export type Voicing = {
  /** Of the latest frame. Costs something: asked only where the level suggests speech. */
  isVoiced(): boolean;
};

export function createVoicing(recent: RecentAudio): Voicing {
  /** A voice holds its pitch for a few frames: looked at first, and mostly last. */
  let pitchLag = shortestLag;

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

/** The shortest at which the signal is similar enough to itself. Two in a step: they share half of the work. */
function repeatingLag(needed: number): number | undefined {
  let energyBefore = energy(windowStart - shortestLag);
  let energyOfNext = energy(windowStart - shortestLag - 1);
  for (let lag = shortestLag; lag < longestLag; lag += 2) {
    let product = 0;
    let productOfNext = 0;
    for (let index = windowStart; index < signalLength; index += stride) {
      const value = signal[index] ?? 0;
      product += value * (signal[index - lag] ?? 0);
      productOfNext += value * (signal[index - lag - 1] ?? 0);
    }
    if (isEnough(product, needed * energyBefore)) return lag;
    if (isEnough(productOfNext, needed * energyOfNext)) return lag + 1;
    energyBefore += energyMoved(windowStart - lag - stride);
    energyOfNext += energyMoved(windowStart - lag - 1 - stride);
  }
  return undefined;
}

/** Cauchy and Schwarz without the square root. */
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

/** What a window that begins here has more than the one a stride later. Exact: these are whole numbers. */
function energyMoved(start: number): number {
  const gained = signal[start] ?? 0;
  const lost = signal[start + windowLength] ?? 0;
  return gained * gained - lost * lost;
}
