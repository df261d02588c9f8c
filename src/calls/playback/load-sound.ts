// Loads a sound that a request names. Requested sounds are loaded before the call is dialled, so
// that a person never waits for one. If a sound can't be loaded, the call isn't dialled.

import type { SoundPort } from '../ports.ts';

/**
 * Never rejects.
 *
 * @param reference `sound:<name>` or a URL. Undefined if the request names no sound
 */
export async function loadRequestedSound(
  reference: string | undefined,
  accountId: string,
  sounds: SoundPort | undefined,
) {
  if (reference === undefined) return undefined;
  if (sounds !== undefined) return await sounds.loadSound(accountId, reference);
  return { ok: false, reason: 'This gateway does not store sounds' } as const;
}
