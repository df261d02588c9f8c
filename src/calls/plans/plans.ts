// What a request plans for the time after the verdict: as it is stored in the request, and as the
// media worker gets it.

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
 * The plan that has the call. While a plan has the call, a bot is not heard in it and does not end
 * it.
 */
export type PlanName = keyof CallPlans;

export type PlanReport =
  /** A new round of detection has begun. */
  | { readonly kind: 'armed'; readonly round: number }
  /** The plan that has the call now. Undefined if no plan has it. */
  | { readonly kind: 'held'; readonly by: PlanName | undefined }
  /**
   * The call must end. A message was left or begun (`voicemail-left`), or no message was left
   * because there was no beep or the machine is a fax (`machine`).
   */
  | { readonly kind: 'over'; readonly outcome: 'voicemail-left' | 'machine' }
  /** No plan will act any more. Reported after the `amd_stopped` that may have caused it. */
  | { readonly kind: 'done' };
