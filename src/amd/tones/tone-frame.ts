// Decides whether a frame is a tone. A cheap check of the level and of the correlation between
// neighbouring samples rules out most frames of speech and silence, so that we only need to compute
// a spectrum for the rest. We also track the line's noise and subtract it, because otherwise a tone
// on a noisy line wouldn't look like a tone.

import { fullScalePower, type RecentAudio } from '../recent-audio.ts';
import type { ToneFrame, ToneRun } from './tone-run.ts';
import { isThirdHarmonic, type Peaks, strongestSines } from './tone-spectrum.ts';

/**
 * The quietest beep that a caller would notice has a level of −45 dBFS. The margin allows for the
 * end of a decaying beep and for attenuation at the far end of the call.
 */
const minToneDbfs = -58;
const aboveFloorDb = 2;
/**
 * Unless it has only just started, a tone has the same level in consecutive frames. Half of all
 * speech frames fail this check.
 */
const evenDb = 3;
const onsetDb = 10;
/**
 * For a tone, the correlation of neighbouring samples is the cosine of its phase step. Hum and the
 * pitch of vowels are above this range, hiss and fricatives below it.
 */
const correlation = { min: -0.3, max: 0.972 };
/**
 * Our estimate of the line's noise falls immediately (except for a single lost frame) but rises by
 * only 5 dB per second, so that words don't raise it.
 */
const floorRiseDb = 0.1;
const firstFloorDbfs = -45;
const lowestFloorDbfs = -80;

/**
 * Minimum share of the power (less the line's noise) that must be in the strongest sine, or in the
 * two strongest sines together.
 */
const purityOfOne = 0.85;
const purityOfTwo = 0.9;
const purityOfSquare = 0.82;
const purityInNoise = 0.6;
const knownFrames = 4;
const noisyDb = 16;
const samePitch = 0.01;
/** −13 dB. Any weaker second sine is probably a harmonic or noise. */
const secondShare = 0.05;
/**
 * We never attribute more than this share of a frame's power to noise, because any tone that
 * matters is stronger than that.
 */
const maxNoise = 0.5;
/**
 * Once a frame is quieter than the tone's last frame by this much, the tone has ended, even if
 * something is still ringing.
 */
const endDropDb = 6;
/**
 * The two oldest of these frames show the line before a tone, and the newest one is part of the
 * tone. The tone may have started anywhere in between.
 */
const historyFrames = 5;
const newest = historyFrames - 1;

export type ToneListener = {
  /** Analyses the latest frame. If it's a tone, describes it in `frame` and returns true. */
  hears(run: ToneRun): boolean;
  /** Returns the line's level before the tone, if the tone starts with the latest frame. */
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
  /** Levels of the latest frames, not counting lost ones. */
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
 * The frame is about as loud as the previous one, or much louder, as at the start of a tone. Note
 * that the first two frames of a tone differ in level unless the tone starts exactly at a frame
 * boundary.
 */
function isEven(dbfs: number, beforeDbfs: number): boolean {
  const riseDb = dbfs - beforeDbfs;
  return Math.abs(riseDb) <= evenDb || riseDb >= onsetDb;
}

/** Fills `frame`. Returns true if the power is concentrated in one or two sines. */
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
  // If the two sines are about equally strong, they may swap places from one frame to the next.
  const swapped = hasSecond && Math.abs(peaks.secondHz - lastHz) < Math.abs(peaks.firstHz - lastHz);
  const otherHz = swapped ? peaks.firstHz : peaks.secondHz;
  const power = hasSecond ? peaks.first + peaks.second : peaks.first;
  frame.hz = swapped ? peaks.secondHz : peaks.firstHz;
  frame.secondHz = hasSecond ? otherHz : 0;
  frame.db = decibel(power);
  frame.beneathDb = decibel(peaks.total - power);
  return true;
}

/** On a noisy line, a known tone may continue through frames that are noisier than usual. */
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
 * The two strongest sines of a square wave contain 0.9 of its power, or less if noise or a codec
 * interferes.
 */
function purityOf({ firstHz, secondHz }: Readonly<Peaks>): number {
  return isThirdHarmonic(firstHz, secondHz) ? purityOfSquare : purityOfTwo;
}

function decibel(power: number): number {
  return 10 * Math.log10(Math.max(power, 1) / fullScalePower);
}
