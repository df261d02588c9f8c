// The media worker's interface to answering machine detection: frames in, events out. src/amd
// implements it.

import type { AmdSettings } from '../calls/call-types.ts';
import type { HeardWords } from '../calls/capture/capture.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';

export type Detector = {
  /**
   * Analyses the next 20 ms of the call: 160 samples at 8 kHz. `push` is called once for every 20
   * ms since the 200 OK. A frame that was lost or not received is silence.
   * The array is reused for the next frame of any call, so it is valid only during the call of
   * `push`.
   * `sentPower` is the power of what was sent in the previous 20 ms (1: full scale).
   */
  push(frame: Int16Array, lost: boolean, sentPower: number): readonly AmdEvent[];
  /**
   * Ends detection and the ear. Returns the closing events, `amd_stopped` last. Returns no
   * `amd_stopped` if it was reported before.
   */
  stop(reason: string): readonly AmdEvent[];
  /** Whether `amd_stopped` was reported. From then on only the `ear` needs frames. */
  readonly done: boolean;
  /** What a plan hears until `stop`. Present only in a call whose settings have `waitForBeepMs`. */
  readonly ear?: PlanEar | undefined;
};

/**
 * What is heard on a line, also while we speak ourselves. The same object is updated with every
 * frame.
 */
export type HeardOnLine = {
  /**
   * Whether a beep ended. An unmistakable beep is reported within 80 ms of its end. Each beep is
   * reported once, no later than detection reports it.
   */
  readonly beep: boolean;
  /** Whether a tone is under way that is not classified yet. */
  readonly tonePending: boolean;
  /** Milliseconds of speech since `forgetSpeaker`, pauses excluded. */
  readonly speechMs: number;
  /** Milliseconds since the last word. */
  readonly pauseMs: number;
  /** The kind of speaker heard last. Undefined if it is not known. */
  readonly who: 'human' | 'machine' | undefined;
};

export type PlanEar = HeardOnLine & {
  /**
   * Forgets the speaker that was heard so far: a message begins, and whoever speaks next counts as
   * another voice.
   */
  forgetSpeaker(): void;
};

export type CreateDetector = (
  settings: AmdSettings,
  /**
   * Receives recognised words once they are final. They are kept for people who inspect the call.
   */
  onWords?: (words: readonly HeardWords[]) => void,
) => Detector;
