// Records one tone from its first frame to its last, and the silence after it. The arrays are
// allocated once and reused. All measurements are in one array, frame by frame, because the state
// of many calls doesn't fit into the CPU's cache. This file doesn't interpret the measurements.

import { frameMs } from '../frame.ts';

/**
 * 4 s, which is longer than any beep. We don't learn anything new from a tone beyond that length,
 * so we stop recording it, which bounds the memory.
 */
const maxKeptFrames = 200;
/**
 * A machine's tone has a constant pitch, but if there's noise or a codec, our measurement may be
 * off by a few hertz.
 */
const samePitchHz = 7;
const samePitchShare = 0.008;
export const steadyDb = 2;
/**
 * `at` is the position of a recorded frame, counted in frames from the first one. Lost frames leave
 * gaps in these positions.
 */
const columnOf = { at: 0, hz: 1, secondHz: 2, db: 3, beneathDb: 4 } as const;
const columns = 5;
/**
 * Number of frames of silence or noise after which a tone has ended. This is half of the pause in a
 * fast busy tone, and short enough to recognise a beep within 150 ms.
 */
export const afterFrames = 5;

/** The measurements for one frame of a tone. */
export type ToneFrame = {
  hz: number;
  /** Pitch of the second sine, or 0 if there's only one. */
  secondHz: number;
  /** Level of the sines alone. */
  db: number;
  /** Level of everything except the sines, including noise. */
  beneathDb: number;
};

export type ToneRun = {
  /** Number of tonal frames, or 0 if we aren't recording a tone. */
  tonalFrames: number;
  /** Number of frames, including the gaps between tonal frames. */
  frames: number;
  /** Frames since the last tonal frame. */
  gap: number;
  steadyOnEnd: number;
  lastHz: number;
  lastDb: number;
  /** The line's level before the tone. */
  beforeDb: number;
  closePair: boolean;
  /** True if we've already reported the tone before it ended. */
  reported: boolean;
  /**
   * True if we've already reported the probable result before we could be certain that the tone had
   * ended.
   */
  ending: boolean;
  keptFrames: number;
  /** `measured` contains `columns` numbers per recorded frame. */
  readonly measured: Float32Array;
  /** Levels of the frames since the last tonal frame, with NaN for a lost frame. */
  readonly afterDb: Float32Array;
};

export function createToneRun(): ToneRun {
  return {
    ...noTone,
    measured: new Float32Array(maxKeptFrames * columns),
    afterDb: new Float32Array(afterFrames),
  };
}

const noTone = {
  tonalFrames: 0,
  frames: 0,
  gap: 0,
  steadyOnEnd: 0,
  lastHz: 0,
  lastDb: 0,
  beforeDb: 0,
  closePair: false,
  reported: false,
  ending: false,
  keptFrames: 0,
} as const;

export function clearRun(run: ToneRun): void {
  Object.assign(run, noTone);
}

export function extendRun(run: ToneRun, frame: ToneFrame): void {
  const continues = run.tonalFrames > 0 && run.gap === 0;
  const steady =
    continues && isSamePitch(frame.hz, run.lastHz) && Math.abs(frame.db - run.lastDb) <= steadyDb;
  run.steadyOnEnd = steady ? run.steadyOnEnd + 1 : 0;
  run.tonalFrames += 1;
  run.frames += run.gap + 1;
  run.gap = 0;
  run.ending = false;
  run.lastHz = frame.hz;
  run.lastDb = frame.db;
  if (run.keptFrames === maxKeptFrames) return;
  const { measured } = run;
  const row = run.keptFrames * columns;
  measured[row + columnOf.at] = run.frames - 1;
  measured[row + columnOf.hz] = frame.hz;
  measured[row + columnOf.secondHz] = frame.secondHz;
  measured[row + columnOf.db] = frame.db;
  measured[row + columnOf.beneathDb] = frame.beneathDb;
  run.keptFrames += 1;
}

/** Returns a copy of one kind of measurement, of the recorded frames from `from` to before `to`. */
export function measurements(
  { measured }: ToneRun,
  kind: keyof typeof columnOf,
  from: number,
  to: number,
): Float32Array {
  const values = new Float32Array(to - from);
  for (let index = from; index < to; index += 1) {
    values[index - from] = measured[index * columns + columnOf[kind]] ?? 0;
  }
  return values;
}

export function runMs(run: ToneRun): number {
  return run.frames * frameMs;
}

export function isSamePitch(hz: number, other: number): boolean {
  return Math.abs(hz - other) <= Math.max(samePitchHz, samePitchShare * other);
}
