// References to sounds in requests and commands: either the name of one of the account's sounds, or
// the URL of a WAV file.

import { z } from 'zod';
import { plainId } from '../../lib/ids.ts';
import { hostMissing, namesHost } from '../../lib/url-text.ts';

export const soundName = plainId;

const namePrefix = 'sound:';
const maxUrlLength = 2_048;

/** Where a sound is stored. */
export type SoundPlace =
  | { readonly kind: 'stored'; readonly name: string }
  | { readonly kind: 'url'; readonly url: URL };

/**
 * Parses a reference. Whether its address may be fetched is decided in `src/sounds/sound-fetch.ts`.
 *
 * @returns undefined if the text isn't a reference
 */
export function soundPlaceOf(reference: string): SoundPlace | undefined {
  if (reference.startsWith(namePrefix)) {
    const name = reference.slice(namePrefix.length);
    return soundName.safeParse(name).success ? { kind: 'stored', name } : undefined;
  }
  return urlProblem(reference) === undefined ? { kind: 'url', url: new URL(reference) } : undefined;
}

/**
 * Returns the reference as shown in events and logs. It leaves out a URL's query string, which may
 * be secret.
 */
export function publicNameOf(reference: string): string {
  const place = soundPlaceOf(reference);
  return place?.kind === 'url' ? `${place.url.origin}${place.url.pathname}` : reference;
}

function urlProblem(text: string): string | undefined {
  if (text.length > maxUrlLength || !URL.canParse(text)) return 'must be a sound:<name> or a URL';
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:')
    return 'must be a sound:<name> or an https URL';
  if (!namesHost(text)) return hostMissing;
  return username === '' && password === '' ? undefined : 'must not contain a user or password';
}

export const soundReference = z
  .string()
  .max(maxUrlLength)
  .superRefine((text, context) => {
    if (soundPlaceOf(text) !== undefined) return;
    const message = text.startsWith(namePrefix)
      ? 'the sound name must be 1 to 128 letters, digits, "_" or "-"'
      : (urlProblem(text) ?? 'must be a sound:<name> or an https URL');
    context.addIssue({ code: 'custom', message });
  })
  .describe(
    '`sound:<name>` of the account, or the `https:` URL of a WAV file; private addresses and `http:` are allowed only within NOTIFY_ALLOWED_NETWORKS',
  );

/** Tells API users that a sound's URL points to an address that may not be fetched. */
export const soundNotReachable =
  'must be a public address over https, or one in NOTIFY_ALLOWED_NETWORKS';
