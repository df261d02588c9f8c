// Records one tone from its first frame to its last, and the silence after it, in arrays that are
// allocated once. Decisions are made elsewhere.

import { frameMs } from '../frame.ts';

/**
 * 4 s, which is longer than any beep. Beyond that, a tone doesn't tell us anything new. This also
 * bounds memory.
 */
const maxKeptFrames = 200;
/**
 * A machine's tone holds its pitch, but with noise or a codec our measurement may be off by a few
 * hertz.
 */
const samePitchHz = 7;
const samePitchShare = 0.008;
export const steadyDb = 2;
/**
 * How many frames of silence or noise end a tone. That's half the pause in a fast busy tone, and
 * short enough to recognise a beep within 150 ms.
 */
export const afterFrames = 5;

/** The measurements of one frame of a tone. */
export type ToneFrame = {
  hz: number;
  /** Pitch of the second sine; 0 if there is only one. */
  secondHz: number;
  /** Level of just the sines. */
  db: number;
  /** Level of everything else, noise included. */
  beneathDb: number;
};

export type ToneRun = {
  /** Number of tonal frames; 0 if no tone is under way. */
  tonalFrames: number;
  /** Number of frames, including the gaps between tonal frames. */
  frames: number;
  /** Frames since the last tonal one. */
  gap: number;
  steadyOnEnd: number;
  lastHz: number;
  lastDb: number;
  /** Level of the line before the tone. */
  beforeDb: number;
  closePair: boolean;
  /** True if we've already reported the tone, before its end. */
  reported: boolean;
  /** True if we've reported the probable result, before the tone's end was certain. */
  ending: boolean;
  keptFrames: number;
  /** Position of each kept frame, in frames since the first. Lost frames lie between them. */
  readonly at: Uint16Array;
  readonly hz: Float32Array;
  readonly secondHz: Float32Array;
  readonly db: Float32Array;
  readonly beneathDb: Float32Array;
  /** Levels of the frames since the last tonal one. NaN for a lost frame. */
  readonly afterDb: Float32Array;
};

export function createToneRun(): ToneRun {
  return {
    ...noTone,
    at: new Uint16Array(maxKeptFrames),
    hz: new Float32Array(maxKeptFrames),
    secondHz: new Float32Array(maxKeptFrames),
    db: new Float32Array(maxKeptFrames),
    beneathDb: new Float32Array(maxKeptFrames),
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
  run.at[run.keptFrames] = run.frames - 1;
  run.hz[run.keptFrames] = frame.hz;
  run.secondHz[run.keptFrames] = frame.secondHz;
  run.db[run.keptFrames] = frame.db;
  run.beneathDb[run.keptFrames] = frame.beneathDb;
  run.keptFrames += 1;
}

export function runMs(run: ToneRun): number {
  return run.frames * frameMs;
}

export function isSamePitch(hz: number, other: number): boolean {
  return Math.abs(hz - other) <= Math.max(samePitchHz, samePitchShare * other);
}
