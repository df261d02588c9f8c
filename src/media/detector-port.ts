// The media worker's view of answering machine detection: frames in, events out. src/amd implements it.

import type { AmdSettings } from '../calls/call-types.ts';
import type { HeardWords } from '../calls/capture/capture.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';

export type Detector = {
  /**
   * 160 samples, 8 kHz, 20 ms: one for every 20 ms since the 200 OK. Silence when lost or not received.
   * The array is used again for the next frame of any call: valid during the call of `push` only.
   */
  push(frame: Int16Array, lost: boolean): readonly AmdEvent[];
  /** The call ended first: the closing events, `amd_stopped` last. */
  stop(reason: string): readonly AmdEvent[];
  /** `amd_stopped` was stated: no more frames are wanted. */
  readonly done: boolean;
};

/** One object, changed with every frame. */
export type HeardOnLine = {
  /** A beep ended: within 80 ms where it is plainly one. Each is told once. */
  readonly beep: boolean;
  /** A tone is under way whose meaning is not known. */
  readonly tonePending: boolean;
  /** Of what was said since `restart`, pauses left out, and since its last word. */
  readonly speechMs: number;
  readonly pauseMs: number;
  /** Who that was. */
  readonly who: 'human' | 'machine' | undefined;
};

/** Listens while we speak ourselves, to other things than detection. src/amd implements it. */
export type LineListener = {
  /** The next 20 ms, and the power of what was sent before (1: full scale). */
  push(frame: Int16Array, lost: boolean, sentPower: number): HeardOnLine;
  /** The next to speak is another one. */
  restart(): void;
  /** Gives memory back; afterwards nothing is heard. */
  release(): void;
};

/** @throws Error when no memory is left. */
export type OpenLineListener = () => LineListener;

export type CreateDetector = (
  settings: AmdSettings,
  /** For who looks into the call; words are told once they are final. */
  onWords?: (words: readonly HeardWords[]) => void,
) => Detector;
