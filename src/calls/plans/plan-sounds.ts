// Loads the sounds of a call's plans before dialling. If a sound can't be loaded, the call isn't
// dialled.

import type { AcceptedCall } from '../call-types.ts';
import { loadRequestedSound } from '../playback/load-sound.ts';
import type { Sound } from '../playback/playback.ts';
import type { SoundPort } from '../ports.ts';
import type { CallPlans } from './plans.ts';

export type LoadedPlans =
  | {
      readonly ok: true;
      /** Undefined if the request has no plan. */
      readonly plans: CallPlans | undefined;
    }
  /** `reason` is meant for people. */
  | { readonly ok: false; readonly reason: string };

/** Loads the sounds of the request's plans. Never rejects. */
export async function loadPlans(
  { accountId, request }: AcceptedCall,
  sounds: SoundPort | undefined,
): Promise<LoadedPlans> {
  const { voicemail, screening } = request;
  if (voicemail === undefined && screening === undefined) return { ok: true, plans: undefined };
  const [message, answer] = await Promise.all([
    loadRequestedSound(voicemail?.play, accountId, sounds),
    loadRequestedSound(screening?.play, accountId, sounds),
  ]);
  if (message?.ok === false) return { ok: false, reason: `Voicemail: ${message.reason}` };
  if (answer?.ok === false) return { ok: false, reason: `Screening: ${answer.reason}` };
  return {
    ok: true,
    plans: {
      ...(voicemail && message && { voicemail: settingsOf(voicemail, message.sound) }),
      ...(answer && { screening: { sound: answer.sound } }),
    },
  };
}

function settingsOf(
  { play: _play, ...rest }: NonNullable<AcceptedCall['request']['voicemail']>,
  sound: Sound,
) {
  return { ...rest, sound };
}
