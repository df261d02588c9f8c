// The strongest two sine waves in the latest 32 ms and their share of its energy: a Hann window and a real FFT of 256
// points (31 Hz a bin; a sine fills five). Knows nothing of time, tones or noise. Allocates once: results are overwritten.

import { frameSamples, sampleRateHz } from './frame.ts';

const windowSamples = 256;
const half = windowSamples / 2;
const binHz = sampleRateHz / windowSamples;
/** Tones begin between 300 and 2400 Hz: room around the beeps' 350 to 2250 for sweeps and inexact ones. */
const lowestBin = 10;
const highestBin = 77;
/** Companions of the strongest one (the second sine of a pair, the harmonics of a square wave) may lie up to 3.8 kHz. */
const highestCompanionBin = 121;
const lobeBins = 2;

export type Peaks = {
  /** Of everything in the window, as the mean square of a sample. */
  total: number;
  firstHz: number;
  /** Same unit as the total. */
  first: number;
  secondHz: number;
  second: number;
};

export type ToneSpectrum = {
  push(frame: Int16Array): void;
  /** Of the latest 256 samples. The same object every time. */
  measure(): Peaks;
};

const hann = Float64Array.from(
  { length: windowSamples },
  (_, index) => 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / windowSamples),
);
/** The mean square of a Hann window. */
const windowPower = 0.375;
const cosines = Float64Array.from({ length: half }, (_, index) =>
  Math.cos((2 * Math.PI * index) / windowSamples),
);
const sines = Float64Array.from({ length: half }, (_, index) =>
  Math.sin((2 * Math.PI * index) / windowSamples),
);
const reversed = Uint8Array.from({ length: half }, (_, index) => {
  let bits = 0;
  for (let bit = 0; bit < 7; bit += 1) bits |= ((index >> bit) & 1) << (6 - bit);
  return bits;
});

export function createToneSpectrum(): ToneSpectrum {
  const samples = new Int16Array(windowSamples);
  const re = new Float64Array(half);
  const im = new Float64Array(half);
  const power = new Float64Array(half);
  const peaks: Peaks = { total: 0, firstHz: 0, first: 0, secondHz: 0, second: 0 };

  return {
    push(frame) {
      samples.copyWithin(0, frameSamples);
      samples.set(frame, windowSamples - frameSamples);
    },
    measure() {
      loadWindow(samples, re, im);
      transform(re, im);
      peaks.total = fillPower(re, im, power);
      findPeaks(power, peaks);
      return peaks;
    },
  };
}

/** Two real samples in one complex, in the order that the transform wants. */
function loadWindow(samples: Int16Array, re: Float64Array, im: Float64Array): void {
  for (let index = 0; index < half; index += 1) {
    const at = 2 * (reversed[index] ?? 0);
    re[index] = (samples[at] ?? 0) * (hann[at] ?? 0);
    im[index] = (samples[at + 1] ?? 0) * (hann[at + 1] ?? 0);
  }
}

/** Radix-2, decimation in time, 128 complex points. */
function transform(re: Float64Array, im: Float64Array): void {
  for (let size = 1; size < half; size *= 2) {
    const step = half / size;
    for (let offset = 0; offset < size; offset += 1) {
      const wr = cosines[offset * step] ?? 0;
      const wi = -(sines[offset * step] ?? 0);
      for (let at = offset; at < half; at += 2 * size) {
        const to = at + size;
        const r = re[to] ?? 0;
        const i = im[to] ?? 0;
        const tr = r * wr - i * wi;
        const ti = r * wi + i * wr;
        const ar = re[at] ?? 0;
        const ai = im[at] ?? 0;
        re[to] = ar - tr;
        im[to] = ai - ti;
        re[at] = ar + tr;
        im[at] = ai + ti;
      }
    }
  }
}

/** Takes the two interleaved real halves apart. Returns the sum; everything as mean squares of unwindowed samples. */
function fillPower(re: Float64Array, im: Float64Array, power: Float64Array): number {
  // One side of the spectrum holds half the energy; N × N of the transform; the window's own loss.
  const scale = 2 / (windowSamples * windowSamples * windowPower);
  let total = 0;
  for (let bin = 1; bin < half; bin += 1) {
    const mirror = half - bin;
    const er = ((re[bin] ?? 0) + (re[mirror] ?? 0)) / 2;
    const ei = ((im[bin] ?? 0) - (im[mirror] ?? 0)) / 2;
    const or = ((im[bin] ?? 0) + (im[mirror] ?? 0)) / 2;
    const oi = ((re[mirror] ?? 0) - (re[bin] ?? 0)) / 2;
    const wr = cosines[bin] ?? 0;
    const wi = -(sines[bin] ?? 0);
    const r = er + or * wr - oi * wi;
    const i = ei + or * wi + oi * wr;
    const value = (r * r + i * i) * scale;
    power[bin] = value;
    total += value;
  }
  return total;
}

function findPeaks(power: Float64Array, peaks: Peaks): void {
  const first = strongest(power, highestBin, -10);
  peaks.firstHz = frequency(power, first);
  peaks.first = lobe(power, first, -10);
  const second = strongest(power, highestCompanionBin, first);
  peaks.secondHz = frequency(power, second);
  peaks.second = lobe(power, second, first);
}

/** Far enough from `otherThan` for its lobe not to be taken for a peak. */
function strongest(power: Float64Array, highest: number, otherThan: number): number {
  let best = lowestBin;
  let bestPower = -1;
  for (let bin = lowestBin; bin <= highest; bin += 1) {
    const value = power[bin] ?? 0;
    if (value > bestPower && (bin - otherThan > lobeBins || otherThan - bin > lobeBins)) {
      best = bin;
      bestPower = value;
    }
  }
  return best;
}

/** A bin between two lobes belongs to the first. */
function lobe(power: Float64Array, bin: number, otherThan: number): number {
  let sum = 0;
  for (let at = bin - lobeBins; at <= bin + lobeBins; at += 1) {
    if (Math.abs(at - otherThan) > lobeBins) sum += power[at] ?? 0;
  }
  return sum;
}

/** Between bins, from the amplitudes of the peak and its greater neighbour: exact for a sine under a Hann window. */
function frequency(power: Float64Array, bin: number): number {
  const below = power[bin - 1] ?? 0;
  const above = power[bin + 1] ?? 0;
  const ratio = Math.sqrt(Math.max(below, above) / Math.max(power[bin] ?? 0, 1e-9));
  const offset = Math.max(0, Math.min(0.5, (2 * ratio - 1) / (ratio + 1)));
  return (bin + (above >= below ? offset : -offset)) * binHz;
}
