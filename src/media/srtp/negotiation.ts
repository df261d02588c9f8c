// Decides whether a leg is encrypted, and with which keys, from the lines `a=crypto` of an offer or
// answer (RFC 4568, section 5; RFC 8643).

import type { MediaEncryption } from '../../calls/media.ts';
import type { SdpMedia } from '../sdp-parse.ts';
import { type CryptoLine, readCrypto, writeCrypto } from './sdes.ts';
import type { SrtpKey } from './srtp-keys.ts';

/** Our side of the negotiation. */
export type OurEncryption = {
  readonly encryption: MediaEncryption;
  /**
   * Our keys, one for each suite. They stay the same for the whole session, so that a re-INVITE
   * doesn't change the key. Empty without encryption.
   */
  readonly crypto: readonly CryptoLine[];
};

/** `ours` encrypts what we send, `theirs` what we receive. */
export type SrtpKeys = { readonly ours: SrtpKey; readonly theirs: SrtpKey };

/** How a line is encrypted, and the attributes with which our answer accepts that. */
export type Encryption = { readonly srtp?: SrtpKeys; readonly answer: readonly string[] };

export const noEncryption: OurEncryption = { encryption: 'rtp', crypto: [] };

/** The attributes of our offer. */
export function cryptoAttributes({ crypto }: OurEncryption): readonly string[] {
  return crypto.map((line) => `a=crypto:${writeCrypto(line)}`);
}

/**
 * Reads a line that answers our offer. It repeats the tag of one of our keys.
 * @returns undefined if the line isn't usable
 */
export function acceptedEncryption(line: SdpMedia, ours: OurEncryption): Encryption | undefined {
  for (const { tag, key: theirs } of keysIn(line, ours)) {
    const own = ours.crypto.find(({ tag: offered, key }) => {
      return offered === tag && key.suite === theirs.suite;
    });
    if (own !== undefined) return { srtp: { ours: own.key, theirs }, answer: [] };
  }
  // The far end encrypts, but with a key that we didn't offer or don't understand.
  const isEncrypted = ours.crypto.length > 0 && line.crypto.length > 0;
  return isEncrypted ? undefined : withoutKeys(line, ours);
}

/**
 * Reads a line that the far end offers, and takes the first key whose suite we support.
 * @returns undefined if the line isn't usable
 */
export function offeredEncryption(line: SdpMedia, ours: OurEncryption): Encryption | undefined {
  for (const { tag, key: theirs } of keysIn(line, ours)) {
    const own = ours.crypto.find(({ key }) => key.suite === theirs.suite);
    if (own === undefined) continue;
    const answer = [`a=crypto:${writeCrypto({ tag, key: own.key })}`];
    return { srtp: { ours: own.key, theirs }, answer };
  }
  return withoutKeys(line, ours);
}

/**
 * The keys of the line that we understand. A far end that returns our own key isn't usable: our own
 * packets would pass as its audio, and both sides might encrypt with the same key stream.
 */
function keysIn(line: SdpMedia, ours: OurEncryption): readonly CryptoLine[] {
  return line.crypto
    .flatMap((text) => readCrypto(text) ?? [])
    .filter(({ key: { keyAndSalt } }) => {
      return !ours.crypto.some((own) => Buffer.compare(own.key.keyAndSalt, keyAndSalt) === 0);
    });
}

function withoutKeys(line: SdpMedia, { encryption }: OurEncryption): Encryption | undefined {
  const isSecure = /^RTP\/SAVP/i.test(line.protocol);
  return isSecure || encryption === 'srtp-required' ? undefined : { answer: [] };
}
