// The interface that plans implement. Frames and events go in, actions come out. Plans don't do any
// I/O, so tests can run them without a phone line.

import type { DetectionStop } from '../../calls/detection/amd-reasons.ts';
import type { PlanReport } from '../../calls/plans/plans.ts';
import type { Playback } from '../../calls/playback/playback.ts';
import type { HeardOnLine } from '../detector-port.ts';

export const frameMs = 20;

export type PlanAction =
  /** Plays the sound now and drops everything else that's queued. */
  | { readonly do: 'play'; readonly playback: Playback }
  | { readonly do: 'stopPlaying' }
  /**
   * Mutes or unmutes the bot. While a bot is muted, its audio is discarded, but its marks are still
   * returned.
   */
  | { readonly do: 'muteBot'; readonly isMuted: boolean }
  /** Ends the bot's stream, so the bot no longer hears the call. */
  | { readonly do: 'stopStream' }
  /** Treats the next voice as a new speaker. */
  | { readonly do: 'forgetSpeaker' }
  | { readonly do: 'stopDetection'; readonly reason: DetectionStop }
  /** Starts another round of detection. */
  | { readonly do: 'detect' }
  | { readonly do: 'report'; readonly report: PlanReport };

/** A plan's input every 20 ms. */
export type PlanInput = {
  /** Undefined if detection has failed, or if the next round hasn't begun. */
  readonly heard: HeardOnLine | undefined;
  /** True while the plan's sound is queued or playing. */
  readonly isPlaying: boolean;
};

export const noActions: readonly PlanAction[] = [];
