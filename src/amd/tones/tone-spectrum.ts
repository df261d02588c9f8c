// Finds the two strongest sines in the last 32 ms of audio, and the share of the energy that each
// of them contributes. We use a Hann window and a 256-point real FFT (31 Hz per bin; a sine fills
// five bins). This file only looks at one window, so it doesn't track tones or noise over time. All
// phone calls share the same scratch memory, because only one of them is analysed at a time.

import { sampleRateHz } from '../frame.ts';
import { earlier, later, type RecentAudio, ringMask } from '../recent-audio.ts';

const windowSamples = 256;
const half = windowSamples / 2;
/** A transform of the whole window consists of two transforms of this many complex points. */
const points = windowSamples / 4;
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
/** Each index below 64 with its three base-4 digits in reverse order. */
const reversed = Uint8Array.from(
  { length: points },
  (_, index) => ((index & 3) << 4) | (index & 12) | (index >> 4),
);
/**
 * One side of the spectrum contains half of the energy, the transform scales by N × N, and the
 * window removes some of the power.
 */
const powerScale = 2 / (windowSamples * windowSamples * windowPower);

/** What a radix-4 step multiplies its last three points by, as real and imaginary parts. */
function twiddles(size: number): Float64Array {
  return Float64Array.from({ length: 6 * size }, (_, index) => {
    const order = ((index % 6) >> 1) + 1;
    const angle = (-2 * Math.PI * Math.floor(index / 6) * order) / (4 * size);
    return index % 2 === 0 ? Math.cos(angle) : Math.sin(angle);
  });
}
const twiddlesOfFour = twiddles(4);
const twiddlesOfSixteen = twiddles(16);

// Scratch memory for one analysis at a time, shared by all calls.
const evenRe = new Float64Array(points);
const evenIm = new Float64Array(points);
const oddRe = new Float64Array(points);
const oddIm = new Float64Array(points);
const power = new Float64Array(half);
const peaks: Peaks = { total: 0, firstHz: 0, first: 0, secondHz: 0, second: 0 };

/** Analyses the latest 256 samples. Returns the same object every time. */
export function strongestSines(recent: RecentAudio): Readonly<Peaks> {
  foldWindow(recent);
  transform(evenRe, evenIm);
  transform(oddRe, oddIm);
  peaks.total = fillEvenPower() + fillOddPower();
  findPeaks();
  return peaks;
}

/**
 * Splits the window into one signal for the even bins, the sum of its two halves, and one for the
 * odd bins, their difference. Because both are real, half as many complex points represent them.
 * For the even bins, we store neighbouring samples in one point. For the odd bins, we combine
 * samples that are a quarter of the window apart, and shift the frequency by one bin. The points
 * are in the order that the transform requires.
 */
function foldWindow({ pairs, end }: RecentAudio): void {
  const start = end - half;
  for (let index = 0; index < points / 2; index += 1) {
    const at = 2 * index;
    const next = at + 1;
    const pair1 = pairs[(start + index) & ringMask] as number;
    const pair2 = pairs[(start + index + 32) & ringMask] as number;
    const pair3 = pairs[(start + index + 64) & ringMask] as number;
    const pair4 = pairs[(start + index + 96) & ringMask] as number;
    const a = earlier(pair1) * (hann[at] as number);
    const b = later(pair1) * (hann[next] as number);
    const c = earlier(pair2) * (hann[at + 64] as number);
    const d = later(pair2) * (hann[next + 64] as number);
    const e = earlier(pair3) * (hann[at + 128] as number);
    const f = later(pair3) * (hann[next + 128] as number);
    const g = earlier(pair4) * (hann[at + 192] as number);
    const h = later(pair4) * (hann[next + 192] as number);
    const to = reversed[index] as number;
    const quarter = reversed[index + points / 2] as number;
    evenRe[to] = a + e;
    evenIm[to] = b + f;
    evenRe[quarter] = c + g;
    evenIm[quarter] = d + h;
    storeOdd(at, a - e, c - g);
    storeOdd(next, b - f, d - h);
  }
}

function storeOdd(index: number, difference: number, quarterLater: number): void {
  const cosine = cosines[index] as number;
  const sine = sines[index] as number;
  const to = reversed[index] as number;
  oddRe[to] = difference * cosine - quarterLater * sine;
  oddIm[to] = -(difference * sine + quarterLater * cosine);
}

/** A radix-4 decimation in time over 64 complex points. */
function transform(re: Float64Array, im: Float64Array): void {
  transformAdjacent(re, im);
  transformFours(re, im, 4, twiddlesOfFour);
  transformFours(re, im, 16, twiddlesOfSixteen);
}

/** The first step, in which nothing needs to be rotated except by quarter turns. */
function transformAdjacent(re: Float64Array, im: Float64Array): void {
  for (let first = 0; first < points; first += 4) {
    const ar = (re[first] as number) + (re[first + 2] as number);
    const ai = (im[first] as number) + (im[first + 2] as number);
    const br = (re[first] as number) - (re[first + 2] as number);
    const bi = (im[first] as number) - (im[first + 2] as number);
    const cr = (re[first + 1] as number) + (re[first + 3] as number);
    const ci = (im[first + 1] as number) + (im[first + 3] as number);
    const dr = (re[first + 1] as number) - (re[first + 3] as number);
    const di = (im[first + 1] as number) - (im[first + 3] as number);
    re[first] = ar + cr;
    im[first] = ai + ci;
    re[first + 1] = br + di;
    im[first + 1] = bi - dr;
    re[first + 2] = ar - cr;
    im[first + 2] = ai - ci;
    re[first + 3] = br - di;
    im[first + 3] = bi + dr;
  }
}

function transformFours(
  re: Float64Array,
  im: Float64Array,
  size: number,
  rotations: Float64Array,
): void {
  for (let offset = 0; offset < size; offset += 1) {
    const at = 6 * offset;
    const ur = rotations[at] as number;
    const ui = rotations[at + 1] as number;
    const vr = rotations[at + 2] as number;
    const vi = rotations[at + 3] as number;
    const wr = rotations[at + 4] as number;
    const wi = rotations[at + 5] as number;
    for (let first = offset; first < points; first += 4 * size) {
      const second = first + size;
      const third = second + size;
      const fourth = third + size;
      const pr = (re[second] as number) * ur - (im[second] as number) * ui;
      const pi = (re[second] as number) * ui + (im[second] as number) * ur;
      const qr = (re[third] as number) * vr - (im[third] as number) * vi;
      const qi = (re[third] as number) * vi + (im[third] as number) * vr;
      const sr = (re[fourth] as number) * wr - (im[fourth] as number) * wi;
      const si = (re[fourth] as number) * wi + (im[fourth] as number) * wr;
      const ar = (re[first] as number) + qr;
      const ai = (im[first] as number) + qi;
      const br = (re[first] as number) - qr;
      const bi = (im[first] as number) - qi;
      const cr = pr + sr;
      const ci = pi + si;
      const dr = pr - sr;
      const di = pi - si;
      re[first] = ar + cr;
      im[first] = ai + ci;
      re[second] = br + di;
      im[second] = bi - dr;
      re[third] = ar - cr;
      im[third] = ai - ci;
      re[fourth] = br - di;
      im[fourth] = bi + dr;
    }
  }
}

/**
 * Separates the two interleaved real halves, fills `power` at the even bins, and returns its sum
 * without bin 0. All values are the mean squares of samples before windowing.
 */
function fillEvenPower(): number {
  const middle = points / 2;
  const middleRe = evenRe[middle] as number;
  const middleIm = evenIm[middle] as number;
  let total = (middleRe * middleRe + middleIm * middleIm) * powerScale;
  power[points] = total;
  for (let point = 1; point < middle; point += 1) {
    const mirror = points - point;
    const er = ((evenRe[point] as number) + (evenRe[mirror] as number)) / 2;
    const ei = ((evenIm[point] as number) - (evenIm[mirror] as number)) / 2;
    const or = ((evenIm[point] as number) + (evenIm[mirror] as number)) / 2;
    const oi = ((evenRe[mirror] as number) - (evenRe[point] as number)) / 2;
    const wr = cosines[2 * point] as number;
    const wi = sines[2 * point] as number;
    const r = or * wr + oi * wi;
    const i = oi * wr - or * wi;
    const value = ((er + r) * (er + r) + (ei + i) * (ei + i)) * powerScale;
    const mirrored = ((er - r) * (er - r) + (ei - i) * (ei - i)) * powerScale;
    power[2 * point] = value;
    power[2 * mirror] = mirrored;
    total += value + mirrored;
  }
  return total;
}

/** Does the same at the odd bins. Half of the points are the mirror images of bins below 4 kHz. */
function fillOddPower(): number {
  let total = 0;
  for (let point = 0; point < points / 2; point += 1) {
    const mirror = points - 1 - point;
    const r = oddRe[point] as number;
    const i = oddIm[point] as number;
    const mirrorR = oddRe[mirror] as number;
    const mirrorI = oddIm[mirror] as number;
    const value = (r * r + i * i) * powerScale;
    const mirrored = (mirrorR * mirrorR + mirrorI * mirrorI) * powerScale;
    power[4 * point + 1] = value;
    power[4 * point + 3] = mirrored;
    total += value + mirrored;
  }
  return total;
}

function findPeaks(): void {
  const first = strongest(lowestBin, highestBin);
  peaks.firstHz = frequency(first);
  peaks.first = lobe(first, -10);
  const second = strongestBeside(first);
  peaks.secondHz = frequency(second);
  peaks.second = lobe(second, first);
}

/** Returns the strongest bin that isn't part of the peak at `first`. */
function strongestBeside(first: number): number {
  const above = strongest(first + lobeBins + 1, highestCompanionBin);
  if (first - lobeBins <= lowestBin) return above;
  const below = strongest(lowestBin, first - lobeBins - 1);
  return (power[above] as number) > (power[below] as number) ? above : below;
}

function strongest(lowest: number, highest: number): number {
  let best = lowest;
  let bestPower = power[lowest] as number;
  for (let bin = lowest + 1; bin <= highest; bin += 1) {
    const value = power[bin] as number;
    if (value > bestPower) {
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
