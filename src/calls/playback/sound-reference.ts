// References to sounds in requests and commands: the name of a sound of the account, or the URL of
// a WAV file.

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
 * Parses a reference. `src/sounds/sound-fetch.ts` decides whether its address may be fetched.
 *
 * @returns undefined if the text is not a reference
 */
export function soundPlaceOf(reference: string): SoundPlace | undefined {
  if (reference.startsWith(namePrefix)) {
    const name = reference.slice(namePrefix.length);
    return soundName.safeParse(name).success ? { kind: 'stored', name } : undefined;
  }
  return urlProblem(reference) === undefined ? { kind: 'url', url: new URL(reference) } : undefined;
}

/**
 * Returns the reference for events and logs, without the query string of a URL, which may be
 * secret.
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
  return username === '' && password === '' ? undefined : 'must not hold a user or password';
}

export const soundReference = z
  .string()
  .max(maxUrlLength)
  .superRefine((text, context) => {
    if (soundPlaceOf(text) !== undefined) return;
    const message = text.startsWith(namePrefix)
      ? 'the name of a sound is 1 to 128 letters, digits, "_" or "-"'
      : (urlProblem(text) ?? 'must be a sound:<name> or an https URL');
    context.addIssue({ code: 'custom', message });
  })
  .describe(
    '`sound:<name>` of the account, or the `https:` URL of a WAV file; private addresses and `http:` are allowed only within NOTIFY_ALLOWED_NETWORKS',
  );

/** The message for API users if the address of a sound's URL may not be fetched. */
export const soundNotReachable =
  'must be a public address over https, or one in NOTIFY_ALLOWED_NETWORKS';
