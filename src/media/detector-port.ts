// The media worker's view of answering machine detection: frames in, events out. src/amd implements it.

import type { AmdSettings } from '../calls/call-types.ts';
import type { HeardWords } from '../calls/capture/capture.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';

export type Detector = {
  /**
   * 160 samples, 8 kHz, 20 ms: one for every 20 ms since the 200 OK. Silence when lost or not received.
   * The array is used again for the next frame of any call: valid during the call of `push` only.
   * `sentPower` is the power of what was sent in the 20 ms before (1: full scale).
   */
  push(frame: Int16Array, lost: boolean, sentPower: number): readonly AmdEvent[];
  /** Ends detection and the ear. Returns the closing events, `amd_stopped` last, unless it was stated before. */
  stop(reason: string): readonly AmdEvent[];
  /** `amd_stopped` was stated: only the `ear` wants more frames. */
  readonly done: boolean;
  /** What a plan goes by, until `stop`, in a call whose settings have `waitForBeepMs`. */
  readonly ear?: PlanEar | undefined;
};

/** What is heard on a line, also while we speak ourselves. One object, changed with every frame. */
export type HeardOnLine = {
  /** A beep ended: within 80 ms where it is plainly one. Each is told once, no later than detection states it. */
  readonly beep: boolean;
  /** A tone is under way whose meaning is not known. */
  readonly tonePending: boolean;
  /** Speech since `forgetSpeaker`, without pauses. */
  readonly speechMs: number;
  /** The time since the last word. */
  readonly pauseMs: number;
  /** Who spoke. */
  readonly who: 'human' | 'machine' | undefined;
};

export type PlanEar = HeardOnLine & {
  /** A message begins. What was heard so far is done with, and the next to speak is another voice. */
  forgetSpeaker(): void;
};

export type CreateDetector = (
  settings: AmdSettings,
  /** For who looks into the call; words are told once they are final. */
  onWords?: (words: readonly HeardWords[]) => void,
) => Detector;
