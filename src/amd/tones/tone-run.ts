// One tone from its first frame to its last and the silence after it: what each frame held, in arrays that are allocated once.
// Judges nothing.

import { frameMs } from '../frame.ts';

/** 4 s: longer than any beep; more of a longer tone tells nothing new. Bounds what a hostile tone makes us keep. */
const maxKeptFrames = 200;
/** A machine's tone keeps its pitch from frame to frame; measuring a noisy or coded one costs a few hertz. */
const samePitchHz = 7;
const samePitchShare = 0.008;
export const steadyDb = 2;
/** Silence or noise that ends a tone: half a fast busy tone's pause, and within the 150 ms that a beep may take to be known. */
export const afterFrames = 5;

/** What was measured in one frame of a tone. */
export type ToneFrame = {
  hz: number;
  /** 0: there is only one sine. */
  secondHz: number;
  /** Level of the sine waves alone. */
  db: number;
  /** Level of all the rest, noise included. */
  beneathDb: number;
};

export type ToneRun = {
  /** Frames that were a tone; 0: there is none. */
  tonalFrames: number;
  /** Gaps between them included. */
  frames: number;
  /** Frames since the last tonal one. */
  gap: number;
  steadyOnEnd: number;
  lastHz: number;
  lastDb: number;
  /** Level of the line before the tone. */
  beforeDb: number;
  closePair: boolean;
  /** What it is was said while it lasted. */
  reported: boolean;
  /** What it seems to be was said, before its end was sure. */
  ending: boolean;
  keptFrames: number;
  /** When each kept frame was, in frames since the first: lost ones lie between. */
  readonly at: Uint16Array;
  readonly hz: Float32Array;
  readonly secondHz: Float32Array;
  readonly db: Float32Array;
  readonly beneathDb: Float32Array;
  /** Levels of the frames since the last tonal one. */
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
