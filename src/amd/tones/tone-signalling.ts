// Recognises ringback and dial tone: two sines 40 to 90 Hz apart. 20 ms of audio cannot distinguish
// them from one sine that wavers; 100 ms can. As soon as a low tone fills such a window, this
// module measures once, at the network's exact frequencies.

import { sampleRateHz } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const windowSamples = 800;
type Pair = readonly [low: number, high: number];
/**
 * ANSI T1.401 dial tone and ringback; British ringback; Japanese ringback (400 Hz multiplied by 16
 * Hz).
 */
const pairsHz: readonly Pair[] = [
  [350, 440],
  [440, 480],
  [400, 450],
  [384, 416],
];
/** Australian and Indian ringback: 400 Hz modulated with 25 Hz. */
const modulatedHz = { below: 375, carrier: 400, above: 425 } as const;
const carrierShare = 0.4;
const sidebandShare = 0.05;
/**
 * Minimum power of the weaker sine relative to the stronger one: −10 dB. Exchanges send both at the
 * same level.
 */
const weakestShare = 0.1;
/**
 * Minimum ratio of the weaker sine to the power halfway between the two. A single wavering sine is
 * strongest there; a pair has almost no power there.
 */
const aboveMiddle = 3;

/**
 * Minimum share of all power that the pair holds. Noise is equally strong at both frequencies too.
 */
const minPairShare = 0.6;

const hann = Float64Array.from(
  { length: windowSamples },
  (_, index) => 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / windowSamples),
);

/** Returns true if the latest 100 ms hold one of these pairs. */
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

/** Returns true for a modulated carrier. A pure sine has less than −30 dB at the sidebands. */
function isModulated(recent: RecentAudio, whole: number): boolean {
  const carrier = powerAt(recent, modulatedHz.carrier);
  if (carrier < carrierShare * whole) return false;
  const { below, above } = modulatedHz;
  return Math.min(powerAt(recent, below), powerAt(recent, above)) >= sidebandShare * carrier;
}

/** Returns the output of a Goertzel filter for a sine that holds all the energy. */
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
