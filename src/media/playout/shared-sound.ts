// A sound in memory that all threads see: however many calls play it, in however many workers, its samples are there once.

import type { CallPlans } from '../../calls/plans/plans.ts';
import type { Playback, Sound } from '../../calls/playback/playback.ts';

/** By the samples that were loaded: they are kept as long as their loader keeps those. */
const shared = new WeakMap<Uint8Array, Uint8Array>();

export function sharedSound(sound: Sound): Sound {
  const { mulaw } = sound;
  if (mulaw.buffer instanceof SharedArrayBuffer) return sound;
  const known = shared.get(mulaw);
  if (known !== undefined) return { ...sound, mulaw: known };
  const copy = new Uint8Array(new SharedArrayBuffer(mulaw.length));
  copy.set(mulaw);
  shared.set(mulaw, copy);
  return { ...sound, mulaw: copy };
}

export function sharedPlayback(playback: Playback): Playback {
  return { ...playback, sound: sharedSound(playback.sound) };
}

export function sharedPlans({ voicemail, screening }: CallPlans): CallPlans {
  return {
    ...(voicemail && { voicemail: { ...voicemail, sound: sharedSound(voicemail.sound) } }),
    ...(screening && { screening: { sound: sharedSound(screening.sound) } }),
  };
}
