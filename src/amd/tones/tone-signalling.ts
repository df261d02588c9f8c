// Recognises ringback and dial tone, which consist of two sines 40 to 90 Hz apart. In a 20 ms
// frame, such a pair looks just like a single wavering sine, but we can tell them apart in 100 ms
// of audio. So as soon as a low tone fills a 100 ms window, we measure the power at the network's
// exact frequencies once.

import { sampleRateHz } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const windowSamples = 800;
type Pair = readonly [low: number, high: number];
/**
 * ANSI T1.401 dial tone and ringback, then British and Japanese ringback. Japanese ringback is 400
 * Hz multiplied by 16 Hz.
 */
const pairsHz: readonly Pair[] = [
  [350, 440],
  [440, 480],
  [400, 450],
  [384, 416],
];
/** Australian and Indian ringback: 400 Hz modulated by 25 Hz. */
const modulatedHz = { below: 375, carrier: 400, above: 425 } as const;
const carrierShare = 0.4;
const sidebandShare = 0.05;
/**
 * The weaker sine may be at most 10 dB below the stronger one. Exchanges send both at the same
 * level.
 */
const weakestShare = 0.1;
/**
 * Minimum ratio between the weaker sine's power and the power halfway between the two frequencies.
 * A single wavering sine has most of its power there, whereas a pair has almost none.
 */
const aboveMiddle = 3;

/**
 * The pair must contain at least this share of all power. Otherwise noise would pass the other
 * checks, because it's equally strong at both frequencies.
 */
const minPairShare = 0.6;

const hann = Float64Array.from(
  { length: windowSamples },
  (_, index) => 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / windowSamples),
);

/** Returns true if the latest 100 ms contain one of these pairs. */
export function isClosePair(recent: RecentAudio): boolean {
  const whole = wholePower(recent);
  return isModulated(recent, whole) || pairsHz.some((pair) => isPair(recent, pair, whole));
}

function isPair(recent: RecentAudio, [low, high]: Pair, whole: number): boolean {
  const a = powerAt(recent, low);
  const b = powerAt(recent, high);
  const middle = powerAt(recent, (low + high) / 2);
  const weaker = Math.min(a, b);
  return (
    a + b >= minPairShare * whole &&
    weaker >= weakestShare * Math.max(a, b) &&
    weaker >= aboveMiddle * middle
  );
}

/** A modulated carrier. At the frequencies of the sidebands, a pure sine has less than −30 dB. */
function isModulated(recent: RecentAudio, whole: number): boolean {
  const carrier = powerAt(recent, modulatedHz.carrier);
  if (carrier < carrierShare * whole) return false;
  const { below, above } = modulatedHz;
  return Math.min(powerAt(recent, below), powerAt(recent, above)) >= sidebandShare * carrier;
}

/** Returns what a Goertzel filter would output if a single sine contained all the energy. */
function wholePower({ samples, end }: RecentAudio): number {
  let sum = 0;
  for (let index = end - windowSamples; index < end; index += 1) {
    const sample = samples[index & ringMask] ?? 0;
    sum += sample * sample;
  }
  return (sum * windowSamples) / 8;
}

/** Goertzel filter. */
function powerAt({ samples, end }: RecentAudio, hz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hz) / sampleRateHz);
  const start = end - windowSamples;
  let last = 0;
  let before = 0;
  for (let index = 0; index < windowSamples; index += 1) {
    const sample = samples[(start + index) & ringMask] ?? 0;
    const next = sample * (hann[index] ?? 0) + coefficient * last - before;
    before = last;
    last = next;
  }
  return last * last + before * before - coefficient * last * before;
}
