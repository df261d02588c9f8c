// The interface of a plan: frames and events in, actions out. A plan does no I/O, so tests run it
// without a line.

import type { PlanReport } from '../../calls/plans/plans.ts';
import type { Playback } from '../../calls/playback/playback.ts';
import type { HeardOnLine } from '../detector-port.ts';

export const frameMs = 20;

export type PlanAction =
  /** Plays the sound at once, and drops whatever else is queued. */
  | { readonly do: 'play'; readonly playback: Playback }
  | { readonly do: 'stopPlaying' }
  /**
   * Mutes the bot, or unmutes it. Nothing that a muted bot says is played. Its marks still come
   * back.
   */
  | { readonly do: 'muteBot'; readonly isMuted: boolean }
  /** Ends the bot's stream, so that the bot hears nothing more either. */
  | { readonly do: 'stopStream' }
  /** Counts whoever speaks next as another speaker. */
  | { readonly do: 'forgetSpeaker' }
  | { readonly do: 'stopDetection'; readonly reason: string }
  /** Starts another round of detection, for whoever comes next. */
  | { readonly do: 'detect' }
  | { readonly do: 'report'; readonly report: PlanReport };

/** What a plan learns with each frame of 20 ms. */
export type PlanInput = {
  /** Undefined if nothing is heard: detection failed, or another round is about to begin. */
  readonly heard: HeardOnLine | undefined;
  /** Whether the plan's sound waits or plays. */
  readonly isPlaying: boolean;
};

export const nothingToDo: readonly PlanAction[] = [];
