// Plans say what to do with a call after the verdict. Each plan has two forms: one is stored in the
// request, and the other is passed to the media worker.

import type { Sound } from '../playback/playback.ts';

export const noBeepChoices = ['play', 'hangup'] as const;

/** A message to leave on a machine. */
export type RequestedVoicemail = {
  /** `sound:<name>`, or an `https:` URL. */
  readonly play: string;
  /** What to do if no beep follows the greeting. */
  readonly ifNoBeep: (typeof noBeepChoices)[number];
  /** Time to wait for a beep, counted from the last word of the greeting. */
  readonly waitForBeepMs: number;
  /** Maximum time from the first start of the message to the hang-up. */
  readonly maxMs: number;
};

/** An answer to a call screener. */
export type RequestedScreening = { readonly play: string };

export type VoicemailSettings = Omit<RequestedVoicemail, 'play'> & { readonly sound: Sound };
export type ScreeningSettings = { readonly sound: Sound };

export type CallPlans = {
  readonly voicemail?: VoicemailSettings;
  readonly screening?: ScreeningSettings;
};

/**
 * Name of a plan. While a plan is in control of the call, the person can't hear the bot, and the
 * bot can't end the call.
 */
export type PlanName = keyof CallPlans;

export type PlanReport =
  /** A new detection round has started. */
  | { readonly kind: 'armed'; readonly round: number }
  /** Control of the call has passed to another plan. `by` is undefined if no plan is in control. */
  | { readonly kind: 'held'; readonly by: PlanName | undefined }
  /**
   * The plan is ending the call. `voicemail-left`: a message was left, at least in part. `machine`:
   * no message was left, because no beep was heard or because the machine is a fax.
   */
  | { readonly kind: 'over'; readonly outcome: 'voicemail-left' | 'machine' }
  /**
   * No plan will act any more. If that was caused by `amd_stopped`, this report follows immediately
   * after it.
   */
  | { readonly kind: 'done' };
