// Ringback and dial tone are two sines 40 to 90 Hz apart, which 20 ms of audio cannot tell from one that wavers. 100 ms can:
// they are measured at the very frequencies of the network once, when a low tone has lasted so long.

import { sampleRateHz } from '../frame.ts';
import { type RecentAudio, ringMask } from '../recent-audio.ts';

const windowSamples = 800;
type Pair = readonly [low: number, high: number];
/** ANSI T1.401 dial and ringback; British ringback; the Japanese one, 400 Hz times 16. */
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
/** Of the stronger one's power: −10 dB. Exchanges send both alike. */
const weakestShare = 0.1;
/** Between the two lies nothing; one sine between them would be strongest there. */
const aboveMiddle = 3;

/** Of all power: noise is alike at both. */
const mostOfIt = 0.6;

const hann = Float64Array.from(
  { length: windowSamples },
  (_, index) => 0.5 - 0.5 * Math.cos((2 * Math.PI * index) / windowSamples),
);

/** Do the latest 100 ms hold such a pair? */
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
    a + b >= mostOfIt * whole &&
    weaker >= weakestShare * Math.max(a, b) &&
    weaker >= aboveMiddle * middle
  );
}

/** A pure sine leaves nothing at the sidebands: −30 dB. */
function isModulated(recent: RecentAudio, whole: number): boolean {
  const carrier = powerAt(recent, modulatedHz.carrier);
  if (carrier < carrierShare * whole) return false;
  const { below, above } = modulatedHz;
  return Math.min(powerAt(recent, below), powerAt(recent, above)) >= sidebandShare * carrier;
}

/** What a Goertzel filter makes of a sine that holds all the energy. */
function wholePower({ samples, end }: RecentAudio): number {
  let sum = 0;
  for (let index = end - windowSamples; index < end; index += 1) {
    const sample = samples[index & ringMask] ?? 0;
    sum += sample * sample;
  }
  return (sum * windowSamples) / 8;
}

/** Goertzel. */
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
