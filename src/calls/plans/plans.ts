// Plans for the time after the verdict, in two forms: as stored in the request, and as passed to
// the media worker.

import type { Sound } from '../playback/playback.ts';

export const noBeepChoices = ['play', 'hangup'] as const;

/** A message to leave on a machine. */
export type RequestedVoicemail = {
  /** `sound:<name>`, or an `https:` URL. */
  readonly play: string;
  /** What to do after a greeting without a beep. */
  readonly ifNoBeep: (typeof noBeepChoices)[number];
  /** How long to wait for a beep, from the last word of the greeting. */
  readonly waitForBeepMs: number;
  /** Longest time from the first start of the message to the hang-up. */
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
 * Name of a plan. While a plan has the call, the person does not hear the bot, and the bot cannot
 * end the call.
 */
export type PlanName = keyof CallPlans;

export type PlanReport =
  /** A new round of detection has begun. */
  | { readonly kind: 'armed'; readonly round: number }
  /** Another plan has the call now. `by` is undefined if no plan has it. */
  | { readonly kind: 'held'; readonly by: PlanName | undefined }
  /**
   * The plan ends the call. `voicemail-left`: a message was left or begun. `machine`: no message
   * was left, because no beep came or the machine is a fax.
   */
  | { readonly kind: 'over'; readonly outcome: 'voicemail-left' | 'machine' }
  /** No plan will act any more. If `amd_stopped` caused that, this report follows it. */
  | { readonly kind: 'done' };
