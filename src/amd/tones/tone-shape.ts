// Describes a tone as a whole: its pitch and how the pitch moved, its level, and the noise beneath
// it. Other files decide what the tone is.

import { frameMs } from '../frame.ts';
import { isSamePitch, measurements, steadyDb, type ToneRun } from './tone-run.ts';

export type PitchRest = { readonly hz: number; readonly ms: number };

export type ToneShape = {
  readonly hz: number;
  readonly secondHz: number | undefined;
  readonly db: number;
  readonly beneathDb: number;
  /** Share of consecutive frame pairs between which the level doesn't change. */
  readonly levelSteady: number;
  /** Share of the frames at the median pitch. */
  readonly onPitch: number;
  readonly secondOnPitch: number;
  /**
   * Pitches at which the tone stayed for at least three frames, in order. We call such a period a
   * rest. `resting` is the share of the tone's frames that belong to rests.
   */
  readonly steps: readonly PitchRest[];
  readonly resting: number;
  /** Root mean square deviation of the pitch from a straight line over time. */
  readonly sweepErrorHz: number;
  /**
   * Four out of five frames are within this distance of the median pitch. We ignore the other
   * frames, because one or two lost packets may have spoiled them.
   */
  readonly wanderHz: number;
  /** Highest pitch minus lowest pitch. */
  readonly rangeHz: number;
  /** How often the pitch changed direction. */
  readonly turns: number;
};

const minRestFrames = 3;
/** If fewer frames contain a second sine, that sine is probably noise or part of a voice. */
const pairedShare = 0.6;

export function shapeOf(run: ToneRun): ToneShape {
  // The first and last frames contain only part of the tone.
  const [from, to] = run.keptFrames > 4 ? [1, run.keptFrames - 1] : [0, run.keptFrames];
  const hz = measurements(run, 'hz', from, to);
  const db = measurements(run, 'db', from, to);
  const seconds = measurements(run, 'secondHz', from, to).filter((value) => value > 0);
  const medianHz = median(hz);
  const secondHz = seconds.length >= hz.length * pairedShare ? median(seconds) : undefined;
  return {
    hz: medianHz,
    secondHz,
    db: median(db),
    beneathDb: median(measurements(run, 'beneathDb', from, to)),
    levelSteady: levelSteadiness(db),
    onPitch: shareNear(hz, medianHz),
    secondOnPitch: shareNear(seconds, secondHz ?? 0),
    ...rests(hz),
    sweepErrorHz: sweepError(hz, measurements(run, 'at', from, to)),
    wanderHz: wander(hz, medianHz),
    turns: turnsOf(hz),
    rangeHz: hz.reduce(larger, 0) - hz.reduce(smaller, Number.POSITIVE_INFINITY),
  };
}

function larger(left: number, right: number): number {
  return Math.max(left, right);
}

function smaller(left: number, right: number): number {
  return Math.min(left, right);
}

function median(values: Float32Array): number {
  return values.toSorted()[Math.floor(values.length / 2)] ?? 0;
}

function levelSteadiness(db: Float32Array): number {
  let steady = 0;
  for (let index = 1; index < db.length; index += 1) {
    if (Math.abs((db[index] ?? 0) - (db[index - 1] ?? 0)) <= steadyDb) steady += 1;
  }
  return steady / Math.max(1, db.length - 1);
}

function shareNear(values: Float32Array, hz: number): number {
  let near = 0;
  for (const value of values) if (isSamePitch(value, hz)) near += 1;
  return near / Math.max(1, values.length);
}

function wander(hz: Float32Array, medianHz: number): number {
  const distances = hz.map((value) => Math.abs(value - medianHz)).sort();
  return distances[Math.floor(0.8 * (distances.length - 1))] ?? 0;
}

/** Finds the rests, and merges consecutive rests at the same pitch. */
function rests(hz: Float32Array): Pick<ToneShape, 'steps' | 'resting'> {
  const steps: PitchRest[] = [];
  let resting = 0;
  for (let from = 0; from < hz.length; ) {
    let to = from + 1;
    while (to < hz.length && isSamePitch(hz[to] ?? 0, hz[from] ?? 0)) to += 1;
    if (to - from >= minRestFrames) {
      resting += to - from;
      addRest(steps, { hz: median(hz.subarray(from, to)), ms: (to - from) * frameMs });
    }
    from = to;
  }
  return { steps, resting: resting / Math.max(1, hz.length) };
}

function addRest(steps: PitchRest[], rest: PitchRest): void {
  const before = steps.at(-1);
  if (before === undefined || !isSamePitch(rest.hz, before.hz)) steps.push(rest);
  else steps[steps.length - 1] = { hz: before.hz, ms: before.ms + rest.ms };
}

/** Counts the changes of direction in the pitch, ignoring those within the measuring error. */
function turnsOf(hz: Float32Array): number {
  let turns = 0;
  let direction = 0;
  let extreme = hz[0] ?? 0;
  for (const value of hz) {
    const towards = Math.sign(value - extreme);
    if (towards === direction) extreme = value;
    else if (!isSamePitch(value, extreme)) {
      if (direction !== 0) turns += 1;
      direction = towards;
      extreme = value;
    }
  }
  return turns;
}

/** Fits a straight line over time, using least squares. */
function sweepError(hz: Float32Array, at: Float32Array): number {
  const count = Math.max(1, hz.length);
  const middle = at.reduce((sum, value) => sum + value, 0) / count;
  const mean = hz.reduce((sum, value) => sum + value, 0) / count;
  const time = (index: number): number => (at[index] ?? 0) - middle;
  let cross = 0;
  let square = 0;
  hz.forEach((value, index) => {
    cross += time(index) * (value - mean);
    square += time(index) ** 2;
  });
  const slope = square === 0 ? 0 : cross / square;
  let error = 0;
  hz.forEach((value, index) => {
    error += (value - mean - slope * time(index)) ** 2;
  });
  return Math.sqrt(error / count);
}
