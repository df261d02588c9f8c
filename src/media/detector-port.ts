// The media worker's view of answering machine detection: frames in, events out. src/amd implements it.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent } from '../calls/contract/amd-event.ts';

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

export type CreateDetector = (settings: AmdSettings) => Detector;
