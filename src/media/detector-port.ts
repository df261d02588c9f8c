// The media worker's interface to answering machine detection, which src/amd implements. The worker
// pushes frames, and gets back events.

import type { AmdSettings } from '../calls/call-types.ts';
import type { HeardWords } from '../calls/capture/capture.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { DetectionStop } from '../calls/detection/amd-reasons.ts';

export type Detector = {
  /**
   * Analyses the call's next 20 ms, i.e. 160 samples at 8 kHz. Call it for every 20 ms from the 200
   * OK on, and pass silence for lost audio. `heard` is the same frame with losses concealed, for a
   * recogniser. The arrays are valid only until `push` returns, because we reuse them for the next
   * frame of any call. `sentPower` is the power of the audio that we sent in the previous 20 ms (1:
   * full scale). `unheardMs` is the audio before this frame, or in its place, that this process
   * didn't hear because it was late.
   */
  push(
    frame: Int16Array,
    lost: boolean,
    sentPower: number,
    heard: Int16Array,
    unheardMs: number,
  ): readonly AmdEvent[];
  /**
   * Ends detection as well as the ear, and returns the closing events. The last of them is
   * `amd_stopped`, unless that has already been reported.
   */
  stop(reason: DetectionStop): readonly AmdEvent[];
  /** True once `amd_stopped` has been reported. From then on, only the `ear` needs frames. */
  readonly done: boolean;
  /**
   * What a plan hears until `stop` is called. Undefined unless the call's settings contain
   * `waitForBeepMs`.
   */
  readonly ear?: PlanEar | undefined;
};

/** What we hear on the line, even while we're speaking. Every frame updates the same object. */
export type HeardOnLine = {
  /**
   * True in the frame that reports the end of a beep. Each beep is reported once, no later than
   * detection reports it. If the beep is unmistakable, we report it within 80 ms of its end.
   */
  readonly beep: boolean;
  /** True while we hear a tone that hasn't been classified yet. */
  readonly tonePending: boolean;
  /** Milliseconds of speech since `forgetSpeaker`, not counting pauses. */
  readonly speechMs: number;
  /** Milliseconds since the last word. */
  readonly pauseMs: number;
  /** The kind of speaker that we heard last. Undefined if unknown. */
  readonly who: 'human' | 'machine' | undefined;
};

export type PlanEar = HeardOnLine & {
  /**
   * Forgets the speaker heard so far. Call this when a message is about to start, because anyone
   * who speaks after that counts as a new speaker.
   */
  forgetSpeaker(): void;
};

export type CreateDetector = (
  settings: AmdSettings,
  /** Receives recognised words once they're final. People who inspect the call can see them. */
  onWords?: (words: readonly HeardWords[]) => void,
) => Detector;
