// The media worker's interface to answering machine detection: frames in, events out. src/amd
// implements it.

import type { AmdSettings } from '../calls/call-types.ts';
import type { HeardWords } from '../calls/capture/capture.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';

export type Detector = {
  /**
   * Analyses the next 20 ms of the call: 160 samples at 8 kHz. `push` is called once for every 20
   * ms from the 200 OK on, with silence for lost audio. The array is reused for the next frame of
   * any call, so it is valid only until `push` returns. `sentPower` is the power of the audio sent
   * in the previous 20 ms (1: full scale).
   */
  push(frame: Int16Array, lost: boolean, sentPower: number): readonly AmdEvent[];
  /**
   * Ends detection and the ear. Returns the closing events. The last one is `amd_stopped`, unless
   * it was already reported.
   */
  stop(reason: string): readonly AmdEvent[];
  /** Whether `amd_stopped` was reported. From then on only the `ear` needs frames. */
  readonly done: boolean;
  /** What a plan hears until `stop`. Present only if the call's settings have `waitForBeepMs`. */
  readonly ear?: PlanEar | undefined;
};

/** What is heard on a line, even while we are speaking. Every frame updates the same object. */
export type HeardOnLine = {
  /**
   * True in the frame that reports the end of a beep. Each beep is reported once, no later than
   * detection reports it. An unmistakable beep is reported within 80 ms of its end.
   */
  readonly beep: boolean;
  /** Whether a tone is sounding that has not been classified yet. */
  readonly tonePending: boolean;
  /** Milliseconds of speech since `forgetSpeaker`, pauses excluded. */
  readonly speechMs: number;
  /** Milliseconds since the last word. */
  readonly pauseMs: number;
  /** The kind of speaker heard last. Undefined if unknown. */
  readonly who: 'human' | 'machine' | undefined;
};

export type PlanEar = HeardOnLine & {
  /**
   * Forgets the speaker heard so far. A message is about to begin, and anyone who speaks after that
   * counts as a new speaker.
   */
  forgetSpeaker(): void;
};

export type CreateDetector = (
  settings: AmdSettings,
  /**
   * Receives recognised words once they are final. They are shown to people who inspect the call.
   */
  onWords?: (words: readonly HeardWords[]) => void,
) => Detector;
