// What a plan knows and what it may do: frames and events in, actions out. Pure, so that tests play it without a line.

import type { PlanReport } from '../../calls/plans/plans.ts';
import type { Playback } from '../../calls/playback/playback.ts';
import type { HeardOnLine } from '../detector-port.ts';

export const frameMs = 20;

export type PlanAction =
  /** At once: what else was queued is gone. */
  | { readonly do: 'play'; readonly playback: Playback }
  | { readonly do: 'stopPlaying' }
  /** What the bot says is not to be heard; its marks come back. */
  | { readonly do: 'muteBot'; readonly isMuted: boolean }
  /** Nor is it to hear any more. */
  | { readonly do: 'stopStream' }
  /** The next to speak is another one. */
  | { readonly do: 'forgetSpeaker' }
  | { readonly do: 'stopDetection'; readonly reason: string }
  /** Anew, for the one who comes now. */
  | { readonly do: 'detect' }
  | { readonly do: 'report'; readonly report: PlanReport };

/** One frame later, or when something happened. */
export type PlanInput = {
  /** Undefined: nothing is heard, since detection failed or another round is to begin. */
  readonly heard: HeardOnLine | undefined;
  /** Whether the plan's sound is still to be played, or plays. */
  readonly isPlaying: boolean;
};

export const nothingToDo: readonly PlanAction[] = [];
