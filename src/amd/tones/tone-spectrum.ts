// Finds the two strongest sines in the last 32 ms of audio, and the share of the energy that each
// of them contributes. We use a Hann window and a 256-point real FFT (31 Hz per bin; a sine fills
// five bins). This file only looks at one window, so it doesn't track tones or noise over time. All
// phone calls share the same scratch memory, because only one of them is analysed at a time.

import { sampleRateHz } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const windowSamples = 256;
const half = windowSamples / 2;
const binHz = sampleRateHz / windowSamples;
/**
 * We search for tones between 300 and 2,400 Hz. Beeps are between 350 and 2,250 Hz, and the margin
 * leaves room for sweeps and for beeps that are off their nominal pitch.
 */
const lowestBin = 10;
const highestBin = 77;
/**
 * The second sine may be as high as 3.8 kHz, because it may be the other half of a pair or a square
 * wave's harmonic.
 */
const highestCompanionBin = 121;
const lobeBins = 2;

export type Peaks = {
  /** Power of everything in the window (mean square per sample). */
  total: number;
  firstHz: number;
  /** Power of the strongest sine, in the same unit as `total`. */
  first: number;
  secondHz: number;
  second: number;
};

/** Returns true if `otherHz` is the third harmonic of `hz`. Frequencies above 4 kHz fold back. */
export function isThirdHarmonic(hz: number, otherHz: number): boolean {
  const thirdHz = 3 * hz <= sampleRateHz / 2 ? 3 * hz : sampleRateHz - 3 * hz;
  return Math.abs(otherHz - thirdHz) <= 0.04 * hz;
}

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

// Scratch memory for one analysis at a time, shared by all calls.
const re = new Float64Array(half);
const im = new Float64Array(half);
const power = new Float64Array(half);
const peaks: Peaks = { total: 0, firstHz: 0, first: 0, secondHz: 0, second: 0 };

/** Analyses the latest 256 samples. Returns the same object every time. */
export function strongestSines(recent: RecentAudio): Readonly<Peaks> {
  loadWindow(recent);
  for (let size = 1; size < half / 2; size *= 4) transformFours(size);
  transformPairs(half / 2);
  peaks.total = fillPower();
  findPeaks();
  return peaks;
}

/** Stores two real samples in one complex number, in the order that the transform requires. */
function loadWindow({ samples, end }: RecentAudio): void {
  const start = end - windowSamples;
  for (let index = 0; index < half; index += 1) {
    const at = 2 * index;
    const to = reversed[index] ?? 0;
    re[to] = (samples[(start + at) & ringMask] ?? 0) * (hann[at] ?? 0);
    im[to] = (samples[(start + at + 1) & ringMask] ?? 0) * (hann[at + 1] ?? 0);
  }
}

/**
 * Combines two radix-2 steps of a decimation in time over 128 complex points. That way we only read
 * each point half as often.
 */
function transformFours(size: number): void {
  const step = half / size / 2;
  for (let offset = 0; offset < size; offset += 1) {
    const ur = cosines[2 * offset * step] as number;
    const ui = -(sines[2 * offset * step] as number);
    const vr = cosines[offset * step] as number;
    const vi = -(sines[offset * step] as number);
    for (let first = offset; first < half; first += 4 * size) {
      const second = first + size;
      const third = second + size;
      const fourth = third + size;
      const pr = (re[second] as number) * ur - (im[second] as number) * ui;
      const pi = (re[second] as number) * ui + (im[second] as number) * ur;
      const qr = (re[fourth] as number) * ur - (im[fourth] as number) * ui;
      const qi = (re[fourth] as number) * ui + (im[fourth] as number) * ur;
      const ar = (re[first] as number) + pr;
      const ai = (im[first] as number) + pi;
      const br = (re[first] as number) - pr;
      const bi = (im[first] as number) - pi;
      const cr = (re[third] as number) + qr;
      const ci = (im[third] as number) + qi;
      const dr = (re[third] as number) - qr;
      const di = (im[third] as number) - qi;
      const er = cr * vr - ci * vi;
      const ei = cr * vi + ci * vr;
      // Rotated by a quarter turn relative to `e`.
      const fr = dr * vi + di * vr;
      const fi = di * vi - dr * vr;
      re[first] = ar + er;
      im[first] = ai + ei;
      re[second] = br + fr;
      im[second] = bi + fi;
      re[third] = ar - er;
      im[third] = ai - ei;
      re[fourth] = br - fr;
      im[fourth] = bi - fi;
    }
  }
}

/** Does the last radix-2 step on its own, because the number of steps (seven) is odd. */
function transformPairs(size: number): void {
  for (let first = 0; first < size; first += 1) {
    const second = first + size;
    const wr = cosines[2 * first] as number;
    const wi = -(sines[2 * first] as number);
    const tr = (re[second] as number) * wr - (im[second] as number) * wi;
    const ti = (re[second] as number) * wi + (im[second] as number) * wr;
    re[second] = (re[first] as number) - tr;
    im[second] = (im[first] as number) - ti;
    re[first] = (re[first] as number) + tr;
    im[first] = (im[first] as number) + ti;
  }
}

/**
 * Separates the two interleaved real halves, fills `power`, and returns its sum. All values are the
 * mean squares of samples before windowing.
 */
function fillPower(): number {
  // One side of the spectrum contains half of the energy, the transform scales by N × N, and the
  // window removes some of the power.
  const scale = 2 / (windowSamples * windowSamples * windowPower);
  let total = 0;
  for (let bin = 1; bin < half; bin += 1) {
    const mirror = half - bin;
    const er = ((re[bin] as number) + (re[mirror] as number)) / 2;
    const ei = ((im[bin] as number) - (im[mirror] as number)) / 2;
    const or = ((im[bin] as number) + (im[mirror] as number)) / 2;
    const oi = ((re[mirror] as number) - (re[bin] as number)) / 2;
    const wr = cosines[bin] as number;
    const wi = -(sines[bin] as number);
    const r = er + or * wr - oi * wi;
    const i = ei + or * wi + oi * wr;
    const value = (r * r + i * i) * scale;
    power[bin] = value;
    total += value;
  }
  return total;
}

function findPeaks(): void {
  const first = strongest(highestBin, -10);
  peaks.firstHz = frequency(first);
  peaks.first = lobe(first, -10);
  const second = strongest(highestCompanionBin, first);
  peaks.secondHz = frequency(second);
  peaks.second = lobe(second, first);
}

/** Returns the strongest bin that isn't part of the peak at `otherThan`. */
function strongest(highest: number, otherThan: number): number {
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

/** Sums a lobe's power. A bin that lies between two lobes counts towards the first one. */
function lobe(bin: number, otherThan: number): number {
  let sum = 0;
  for (let at = bin - lobeBins; at <= bin + lobeBins; at += 1) {
    if (Math.abs(at - otherThan) > lobeBins) sum += power[at] ?? 0;
  }
  return sum;
}

/**
 * Interpolates between bins, using the amplitudes of the peak and of its larger neighbour. For a
 * sine under a Hann window, the result is exact.
 */
function frequency(bin: number): number {
  const below = power[bin - 1] ?? 0;
  const above = power[bin + 1] ?? 0;
  const ratio = Math.sqrt(Math.max(below, above) / Math.max(power[bin] ?? 0, 1e-9));
  const offset = Math.max(0, Math.min(0.5, (2 * ratio - 1) / (ratio + 1)));
  return (bin + (above >= below ? offset : -offset)) * binHz;
}
