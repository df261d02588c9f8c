// Recognises ringback and dial tone, which consist of two sines 40 to 90 Hz apart. In a 20 ms
// frame, such a pair looks just like a single wavering sine, but we can tell them apart in 100 ms
// of audio. So as soon as a low tone fills a 100 ms window, we measure the power at the network's
// exact frequencies once.

import { sampleRateHz } from '../frame.ts';
import { earlier, later, type RecentAudio, ringMask } from '../recent-audio.ts';

const windowSamples = 800;
const windowPairs = windowSamples / 2;
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
  // The pair can't contain its share of the power without this much in each sine.
  if (a * (1 + 1 / weakestShare) < minPairShare * whole) return false;
  const b = powerAt(recent, high);
  const weaker = Math.min(a, b);
  if (a + b < minPairShare * whole || weaker < weakestShare * Math.max(a, b)) return false;
  return weaker >= aboveMiddle * powerAt(recent, (low + high) / 2);
}

/** A modulated carrier. At the frequencies of the sidebands, a pure sine has less than −30 dB. */
function isModulated(recent: RecentAudio, whole: number): boolean {
  const carrier = powerAt(recent, modulatedHz.carrier);
  if (carrier < carrierShare * whole) return false;
  const { below, above } = modulatedHz;
  const needed = sidebandShare * carrier;
  return powerAt(recent, below) >= needed && powerAt(recent, above) >= needed;
}

/** Returns what a Goertzel filter would output if a single sine contained all the energy. */
function wholePower({ pairs, end }: RecentAudio): number {
  let sum = 0;
  for (let index = end - windowPairs; index < end; index += 1) {
    const pair = pairs[index & ringMask] as number;
    sum += earlier(pair) * earlier(pair) + later(pair) * later(pair);
  }
  return (sum * windowSamples) / 8;
}

/** Goertzel filter. */
function powerAt({ pairs, end }: RecentAudio, hz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hz) / sampleRateHz);
  const start = end - windowPairs;
  let last = 0;
  let before = 0;
  for (let index = 0; index < windowPairs; index += 1) {
    const pair = pairs[(start + index) & ringMask] as number;
    before = earlier(pair) * (hann[2 * index] as number) + coefficient * last - before;
    last = later(pair) * (hann[2 * index + 1] as number) + coefficient * before - last;
  }
  return last * last + before * before - coefficient * last * before;
}
