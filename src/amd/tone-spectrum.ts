// What a frame is made of, if it is a tone: one or two sine waves that hold nearly all of its energy. A bank of Goertzel
// filters 50 Hz apart over the band of beeps and signalling tones, on a Hann window (a sine fills three neighbours).

import { frameSamples, sampleRateHz } from './frame.ts';

const binHz = sampleRateHz / frameSamples;
const firstBin = 6; // 300 Hz
const binCount = 40; // up to 2250 Hz; a multiple of 4, see below

const hann = Float64Array.from(
  { length: frameSamples },
  (_, index) => 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / frameSamples),
);
const coefficients = Float64Array.from(
  { length: binCount },
  (_, index) => 2 * Math.cos((2 * Math.PI * (firstBin + index)) / frameSamples),
);

export type Tone = {
  /** Of the strongest sine. */
  readonly hz: number;
  /** Of the second one, where there are two: ringback, busy, DTMF, dual beeps. */
  readonly secondHz?: number;
};

/** Part of the energy that has to be in the sine waves. 15 dB of noise below the tone leaves 0.97. */
const neededPurity = 0.88;
/** A second sine weaker than this is a harmonic or noise (−13 dB). */
const secondShare = 0.05;

export type ToneSpectrum = { measure(frame: Int16Array): Tone | undefined };

export function createToneSpectrum(): ToneSpectrum {
  const windowed = new Float64Array(frameSamples);
  const power = new Float64Array(binCount);
  return {
    measure(frame) {
      let energy = 0;
      for (let index = 0; index < frameSamples; index += 1) {
        const value = (frame[index] ?? 0) * (hann[index] ?? 0);
        windowed[index] = value;
        energy += value * value;
      }
      // Parseval for a real signal: the positive half of the spectrum holds N/2 times the energy.
      const total = (energy * frameSamples) / 2;
      if (total === 0) return undefined;
      for (let bin = 0; bin < binCount; bin += 4) fillPower(windowed, power, bin);
      return findTone(power, total);
    },
  };
}

/** Four filters at once: one alone waits for its own previous result at every sample. */
function fillPower(windowed: Float64Array, power: Float64Array, bin: number): void {
  const c0 = coefficients[bin] ?? 0;
  const c1 = coefficients[bin + 1] ?? 0;
  const c2 = coefficients[bin + 2] ?? 0;
  const c3 = coefficients[bin + 3] ?? 0;
  let [a0, a1, a2, a3, b0, b1, b2, b3] = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let index = 0; index < frameSamples; index += 1) {
    const sample = windowed[index] ?? 0;
    const n0 = sample + c0 * a0 - b0;
    const n1 = sample + c1 * a1 - b1;
    const n2 = sample + c2 * a2 - b2;
    const n3 = sample + c3 * a3 - b3;
    b0 = a0;
    b1 = a1;
    b2 = a2;
    b3 = a3;
    a0 = n0;
    a1 = n1;
    a2 = n2;
    a3 = n3;
  }
  power[bin] = a0 * a0 + b0 * b0 - c0 * a0 * b0;
  power[bin + 1] = a1 * a1 + b1 * b1 - c1 * a1 * b1;
  power[bin + 2] = a2 * a2 + b2 * b2 - c2 * a2 * b2;
  power[bin + 3] = a3 * a3 + b3 * b3 - c3 * a3 * b3;
}

function findTone(power: Float64Array, total: number): Tone | undefined {
  const first = strongestBin(power, -10);
  const firstPower = lobe(power, first);
  const second = strongestBin(power, first);
  const secondPower = second === -1 ? 0 : lobe(power, second, first);
  if (firstPower / total >= neededPurity) {
    const hasSecond = secondPower / firstPower >= secondShare;
    return hasSecond
      ? { hz: centreHz(power, first), secondHz: centreHz(power, second) }
      : { hz: centreHz(power, first) };
  }
  if ((firstPower + secondPower) / total < neededPurity) return undefined;
  if (secondPower / firstPower < secondShare) return undefined;
  return { hz: centreHz(power, first), secondHz: centreHz(power, second) };
}

/** At least three bins away from `otherThan`, whose lobe reaches two to each side. −1: none. */
function strongestBin(power: Float64Array, otherThan: number): number {
  let best = -1;
  let bestPower = 0;
  for (let bin = 0; bin < binCount; bin += 1) {
    const value = power[bin] ?? 0;
    if (value > bestPower && Math.abs(bin - otherThan) >= 3) {
      best = bin;
      bestPower = value;
    }
  }
  return best;
}

/** A sine between two bins spreads over four; the outer two hold under 2 %. */
function lobe(power: Float64Array, bin: number, notNear = -10): number {
  let sum = 0;
  for (let offset = -2; offset <= 2; offset += 1) {
    const index = bin + offset;
    if (Math.abs(index - notNear) > 2) sum += power[index] ?? 0;
  }
  return sum;
}

/** Amplitude-weighted centre: within 5 Hz for a clean sine. */
function centreHz(power: Float64Array, bin: number): number {
  let weight = 0;
  let moment = 0;
  for (let offset = -1; offset <= 1; offset += 1) {
    const amplitude = Math.sqrt(Math.max(0, power[bin + offset] ?? 0));
    weight += amplitude;
    moment += amplitude * offset;
  }
  const offset = weight === 0 ? 0 : moment / weight;
  // Three bins of a Hann lobe pull the centre to the middle by this factor.
  return Math.round((firstBin + bin + offset * 1.5) * binHz);
}
