// Is this frame a tone? A glance at its level and at neighbouring samples first, which most frames of speech and silence do
// not survive; the spectrum after that. Follows the line's noise, which is not counted against a tone heard over it.

import { fullScalePower, type RecentAudio } from '../recent-audio.ts';
import type { ToneFrame, ToneRun } from './tone-run.ts';
import { isThirdHarmonic, type Peaks, strongestSines } from './tone-spectrum.ts';

/** −45 dBFS is the quietest beep that a caller would notice; a decaying one's tail and a far end's loss lie below. */
const quietestToneDbfs = -58;
const aboveFloorDb = 2;
/** A tone's level is the same from frame to frame, or it has just begun; speech moves otherwise half of the time. */
const evenDb = 3;
const onsetDb = 10;
/** Neighbouring samples' correlation is the cosine of a tone's angle. Outside: hum and vowels' pitch; hiss and fricatives. */
const correlation = { min: -0.3, max: 0.972 };
/** The line's noise: it falls at once, though not with one lost frame, and rises slowly (5 dB a second), past words. */
const floorRiseDb = 0.1;
const firstFloorDbfs = -45;
const lowestFloorDbfs = -80;

/** Part of the power (less the line's noise) that the strongest sine, or the strongest two, must hold. */
const purityOfOne = 0.85;
const purityOfTwo = 0.9;
const purityOfSquare = 0.82;
const purityInNoise = 0.6;
const knownFrames = 4;
const noisyDb = 16;
const samePitch = 0.01;
/** A second sine weaker than this is a harmonic or noise (−13 dB). */
const secondShare = 0.05;
/** Noise explains no more of a frame than this: a tone that matters is stronger. */
const mostNoise = 0.5;
/** A frame so much quieter than the one before comes after the tone, whatever rings in it. */
const endDropDb = 6;
/** The line before a tone: the two oldest frames of these. The newest is the tone, the ones between may hold its beginning. */
const historyFrames = 5;
const newest = historyFrames - 1;

export type ToneListener = {
  /** Takes the latest frame in; true: `frame` was filled in. */
  hears(run: ToneRun): boolean;
  /** Level of the line before a tone that the latest frame is the first of. */
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
      return describe(frame, peaks, noise, run.lastHz) || goesOn(frame, peaks, line, run);
    },
    beforeDb() {
      return Math.max(line.history[0] ?? 0, line.history[1] ?? 0);
    },
  };
}

type Line = {
  floorDbfs: number;
  /** Levels of the latest frames, lost ones left out. */
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
  if (dbfs < Math.max(quietestToneDbfs, floorDbfs + aboveFloorDb)) return false;
  if (run.tonalFrames > 0) return dbfs >= run.lastDb - endDropDb;
  if (!isEven(dbfs, history[newest - 1] ?? 0) && dbfs < (history[newest - 2] ?? 0) + onsetDb) {
    return false;
  }
  return neighbours >= correlation.min && neighbours <= correlation.max;
}

/** As loud as the frame before, or a beginning; a tone fills its second frame only where it began at once with the first. */
function isEven(dbfs: number, beforeDbfs: number): boolean {
  const riseDb = dbfs - beforeDbfs;
  return Math.abs(riseDb) <= evenDb || riseDb >= onsetDb;
}

/** Is the power in one sine, or in two? */
function describe(
  frame: ToneFrame,
  peaks: Readonly<Peaks>,
  noise: number,
  lastHz: number,
): boolean {
  const total = Math.max(peaks.total - noise, peaks.total * (1 - mostNoise));
  const hasSecond = peaks.second >= secondShare * peaks.first;
  const isTwo = hasSecond && peaks.first + peaks.second >= purityOf(peaks) * total;
  if (peaks.first < purityOfOne * total && !isTwo) return false;
  // Two alike take turns in being the stronger one.
  const swapped = hasSecond && Math.abs(peaks.secondHz - lastHz) < Math.abs(peaks.firstHz - lastHz);
  const otherHz = swapped ? peaks.firstHz : peaks.secondHz;
  const power = hasSecond ? peaks.first + peaks.second : peaks.first;
  frame.hz = swapped ? peaks.secondHz : peaks.firstHz;
  frame.secondHz = hasSecond ? otherHz : 0;
  frame.db = decibel(power);
  frame.beneathDb = decibel(peaks.total - power);
  return true;
}

/** On a noisy line a tone that is known stays one in the frames in which the noise is louder than its mean. */
function goesOn(
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

/** A square wave's two strongest are 0.9 of it, and its noise and coder take of that. */
function purityOf({ firstHz, secondHz }: Readonly<Peaks>): number {
  return isThirdHarmonic(firstHz, secondHz) ? purityOfSquare : purityOfTwo;
}

function decibel(power: number): number {
  return 10 * Math.log10(Math.max(power, 1) / fullScalePower);
}
