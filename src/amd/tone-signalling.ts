// Ringback and dial tone are two sines 40 to 90 Hz apart, which 20 ms of audio cannot tell from one that wavers. 100 ms can:
// the last of them are kept, and measured at the very frequencies of the network once, when a low tone has lasted so long.

import { frameSamples, sampleRateHz } from './frame.ts';

const keptSamples = 800;
/** ANSI T1.401 dial and ringback; British ringback; the Japanese one, 400 Hz times 16. */
const pairsHz = [
  [350, 440],
  [440, 480],
  [400, 450],
  [384, 416],
] as const;
/** Australian and Indian ringback: 400 Hz modulated with 25 Hz. */
const modulatedHz = { below: 375, carrier: 400, above: 425 } as const;
const carrierShare = 0.4;
const sidebandShare = 0.05;
/** Of the stronger one's power: −10 dB. Exchanges send both alike. */
const weakestShare = 0.1;
/** Between the two lies nothing; one sine between them would be strongest there. */
const aboveMiddle = 3;

/** Of all power: noise is alike at both. */
const mostOfIt = 0.6;

const hann = Float64Array.from(
  { length: keptSamples },
  (_, index) => 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / keptSamples),
);

export type PairFinder = {
  push(frame: Int16Array): void;
  /** Do the last 100 ms hold such a pair? */
  isClosePair(): boolean;
};

export function createPairFinder(): PairFinder {
  const samples = new Int16Array(keptSamples);
  return {
    push(frame) {
      samples.copyWithin(0, frameSamples);
      samples.set(frame, keptSamples - frameSamples);
    },
    isClosePair() {
      const whole = wholePower(samples);
      return (
        isModulated(samples, whole) ||
        pairsHz.some(([low, high]) => {
          const a = powerAt(samples, low);
          const b = powerAt(samples, high);
          const middle = powerAt(samples, (low + high) / 2);
          const weaker = Math.min(a, b);
          return (
            a + b >= mostOfIt * whole &&
            weaker >= weakestShare * Math.max(a, b) &&
            weaker >= aboveMiddle * middle
          );
        })
      );
    },
  };
}

/** A pure sine leaves nothing at the sidebands: −30 dB. */
function isModulated(samples: Int16Array, whole: number): boolean {
  const carrier = powerAt(samples, modulatedHz.carrier);
  if (carrier < carrierShare * whole) return false;
  const { below, above } = modulatedHz;
  return Math.min(powerAt(samples, below), powerAt(samples, above)) >= sidebandShare * carrier;
}

/** What a Goertzel filter makes of a sine that holds all the energy. */
function wholePower(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return (sum * keptSamples) / 8;
}

/** Goertzel. */
function powerAt(samples: Int16Array, hz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hz) / sampleRateHz);
  let last = 0;
  let before = 0;
  for (let index = 0; index < keptSamples; index += 1) {
    const next = (samples[index] ?? 0) * (hann[index] ?? 0) + coefficient * last - before;
    before = last;
    last = next;
  }
  return last * last + before * before - coefficient * last * before;
}
