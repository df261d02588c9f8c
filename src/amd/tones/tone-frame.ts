// Decides whether a frame is a tone. The first check looks at its level and at neighbouring samples
// only; most frames of speech and silence fail it. The spectrum comes second. The module tracks the
// line's noise, which does not count against a tone heard over it.

import { fullScalePower, type RecentAudio } from '../recent-audio.ts';
import type { ToneFrame, ToneRun } from './tone-run.ts';
import { isThirdHarmonic, type Peaks, strongestSines } from './tone-spectrum.ts';

/**
 * The quietest beep that a caller would notice has −45 dBFS. The margin allows for the tail of a
 * decaying beep and for attenuation at the far end.
 */
const minToneDbfs = -58;
const aboveFloorDb = 2;
/**
 * A tone keeps its level from frame to frame, or has just begun. In half of its frames, speech does
 * neither.
 */
const evenDb = 3;
const onsetDb = 10;
/**
 * The correlation of neighbouring samples is the cosine of a tone's phase step. Above the range lie
 * hum and the pitch of vowels; below it lie hiss and fricatives.
 */
const correlation = { min: -0.3, max: 0.972 };
/**
 * The estimate of the line's noise falls immediately, though not with a single lost frame. It rises
 * slowly (5 dB a second), so that words do not raise it.
 */
const floorRiseDb = 0.1;
const firstFloorDbfs = -45;
const lowestFloorDbfs = -80;

/**
 * Share of the power (less the line's noise) that the strongest sine, or the two strongest, must
 * hold.
 */
const purityOfOne = 0.85;
const purityOfTwo = 0.9;
const purityOfSquare = 0.82;
const purityInNoise = 0.6;
const knownFrames = 4;
const noisyDb = 16;
const samePitch = 0.01;
/** A weaker second sine is a harmonic or noise (−13 dB). */
const secondShare = 0.05;
/** Noise may explain at most this share of a frame's power. A tone that matters is stronger. */
const maxNoise = 0.5;
/**
 * A frame that is this much quieter than the tone's last frame comes after the tone, even if
 * something still rings.
 */
const endDropDb = 6;
/**
 * The two oldest of these frames show the line before a tone. The newest one is the tone. The
 * frames between may hold its beginning.
 */
const historyFrames = 5;
const newest = historyFrames - 1;

export type ToneListener = {
  /** Takes the latest frame. Returns true if it is a tone, which `frame` then describes. */
  hears(run: ToneRun): boolean;
  /** Level of the line before a tone whose first frame is the latest frame. */
  beforeDb(): number;
  readonly frame: Readonly<ToneFrame>;
};

export function createToneListener(recent: RecentAudio): ToneListener {
  const frame: ToneFrame = { hz: 0, secondHz: 0, db: 0, beneathDb: 0 };
  const line: Line = {
    floorDbfs: firstFloorDbfs,
    history: new Float64Array(historyFrames).fill(firstFloorDbfs),
  };

  return {
    frame,
    hears(run) {
      remember(line, recent.dbfs, run);
      if (!mayBeTone(line, recent, run)) return false;
      const noise = 10 ** (line.floorDbfs / 10) * fullScalePower;
      const peaks = strongestSines(recent);
      return describe(frame, peaks, noise, run.lastHz) || continuesInNoise(frame, peaks, line, run);
    },
    beforeDb() {
      return Math.max(line.history[0] ?? 0, line.history[1] ?? 0);
    },
  };
}

type Line = {
  floorDbfs: number;
  /** Levels of the latest frames, without lost ones. */
  readonly history: Float64Array;
};

function remember(line: Line, dbfs: number, run: ToneRun): void {
  const { history } = line;
  if (run.tonalFrames === 0) {
    const level = Math.max(dbfs, history[newest] ?? 0, lowestFloorDbfs);
    line.floorDbfs = Math.min(level, line.floorDbfs + floorRiseDb);
  }
  for (let index = 0; index < newest; index += 1) history[index] = history[index + 1] ?? 0;
  history[newest] = dbfs;
}

function mayBeTone(
  { floorDbfs, history }: Line,
  { dbfs, neighbours }: RecentAudio,
  run: ToneRun,
): boolean {
  if (dbfs < Math.max(minToneDbfs, floorDbfs + aboveFloorDb)) return false;
  if (run.tonalFrames > 0) return dbfs >= run.lastDb - endDropDb;
  if (!isEven(dbfs, history[newest - 1] ?? 0) && dbfs < (history[newest - 2] ?? 0) + onsetDb) {
    return false;
  }
  return neighbours >= correlation.min && neighbours <= correlation.max;
}

/**
 * Returns true if the frame is as loud as the previous one, or much louder, as at the onset of a
 * tone. The first two frames of a tone are equally loud only if the tone began at the start of a
 * frame.
 */
function isEven(dbfs: number, beforeDbfs: number): boolean {
  const riseDb = dbfs - beforeDbfs;
  return Math.abs(riseDb) <= evenDb || riseDb >= onsetDb;
}

/** Fills `frame` and returns true if the power is in one sine or in two. */
function describe(
  frame: ToneFrame,
  peaks: Readonly<Peaks>,
  noise: number,
  lastHz: number,
): boolean {
  const total = Math.max(peaks.total - noise, peaks.total * (1 - maxNoise));
  const hasSecond = peaks.second >= secondShare * peaks.first;
  const isTwo = hasSecond && peaks.first + peaks.second >= purityOf(peaks) * total;
  if (peaks.first < purityOfOne * total && !isTwo) return false;
  // If the two sines are about equally strong, either may be measured as the stronger one.
  const swapped = hasSecond && Math.abs(peaks.secondHz - lastHz) < Math.abs(peaks.firstHz - lastHz);
  const otherHz = swapped ? peaks.firstHz : peaks.secondHz;
  const power = hasSecond ? peaks.first + peaks.second : peaks.first;
  frame.hz = swapped ? peaks.secondHz : peaks.firstHz;
  frame.secondHz = hasSecond ? otherHz : 0;
  frame.db = decibel(power);
  frame.beneathDb = decibel(peaks.total - power);
  return true;
}

/**
 * On a noisy line, a known tone continues through frames in which the noise is louder than usual.
 */
function continuesInNoise(
  frame: ToneFrame,
  peaks: Readonly<Peaks>,
  { floorDbfs }: Line,
  run: ToneRun,
): boolean {
  if (run.tonalFrames < knownFrames || run.lastDb - floorDbfs > noisyDb) return false;
  if (Math.abs(peaks.firstHz - run.lastHz) > samePitch * run.lastHz) return false;
  if (peaks.first < purityInNoise * peaks.total) return false;
  frame.hz = peaks.firstHz;
  frame.secondHz = 0;
  frame.db = decibel(peaks.first);
  frame.beneathDb = decibel(peaks.total - peaks.first);
  return true;
}

/**
 * The two strongest sines of a square wave hold 0.9 of its power. Noise and codec reduce that
 * share.
 */
function purityOf({ firstHz, secondHz }: Readonly<Peaks>): number {
  return isThirdHarmonic(firstHz, secondHz) ? purityOfSquare : purityOfTwo;
}

function decibel(power: number): number {
  return 10 * Math.log10(Math.max(power, 1) / fullScalePower);
}
