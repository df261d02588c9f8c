// What a request plans for the time after the verdict, as it stands in the request, and what the media worker makes of it.

import type { Sound } from '../playback/playback.ts';

export const noBeepChoices = ['play', 'hangup'] as const;

/** A message for a machine. */
export type RequestedVoicemail = {
  /** `sound:<name>`, or an `https:` URL. */
  readonly play: string;
  /** After a greeting without a beep. */
  readonly ifNoBeep: (typeof noBeepChoices)[number];
  /** From the last word of the greeting. */
  readonly waitForBeepMs: number;
  /** From the message's first start to the hang-up. */
  readonly maxMs: number;
};

/** An answer for a call screener. */
export type RequestedScreening = { readonly play: string };

export type VoicemailSettings = Omit<RequestedVoicemail, 'play'> & { readonly sound: Sound };
export type ScreeningSettings = { readonly sound: Sound };

export type CallPlans = {
  readonly voicemail?: VoicemailSettings;
  readonly screening?: ScreeningSettings;
};

/** A plan has the call while a bot is not to be heard in it, or does not end it. */
export type PlanName = keyof CallPlans;

export type PlanReport =
  /** Detection begins anew. */
  | { readonly kind: 'armed'; readonly round: number }
  /** Whose the call is now; undefined: no plan's. */
  | { readonly kind: 'held'; readonly by: PlanName | undefined }
  /** The call is to end: a message was left, or began to be; or none was, since there was no beep, or it was a fax. */
  | { readonly kind: 'over'; readonly outcome: 'voicemail-left' | 'machine' }
  /** Nothing more comes of any. Told after the `amd_stopped` that it may follow from. */
  | { readonly kind: 'done' };
