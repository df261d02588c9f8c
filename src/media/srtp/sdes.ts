// Keys in SDP: the lines `a=crypto:<tag> <suite> inline:<key and salt> <parameters>` (RFC 4568).

import { randomBytes } from 'node:crypto';
import {
  masterKeyBytes,
  masterSaltBytes,
  type SrtpKey,
  type SrtpSuite,
  srtpSuites,
} from './srtp-keys.ts';

/** One line. An answer repeats the tag of the line that it accepts. */
export type CryptoLine = { readonly tag: number; readonly key: SrtpKey };

const keyBytes = masterKeyBytes + masterSaltBytes;

/** A line, without `a=crypto:`. A lifetime (`|2^20`) may follow the key. */
const cryptoLine = /^(\d{1,9}) +([A-Z0-9_]{1,64}) +inline:([A-Za-z0-9+/=]{1,64})(\|[^ ;]*)?( .*)?$/;
/** `|1:4`: the length of an MKI in each packet. We don't support that. */
const mki = /:/;
/**
 * A hint about the sender's window. Any other parameter turns off encryption or authentication, or
 * derives other keys, so we can't accept the line.
 */
const harmlessParameter = /^WSH=\d+$/;

/** @returns undefined if we don't support what the line asks for */
export function readCrypto(value: string): CryptoLine | undefined {
  const [, tag, suite, inline, lifetime = '', parameters = ''] =
    cryptoLine.exec(value.trim()) ?? [];
  const isSupported =
    isSuite(suite) &&
    !mki.test(lifetime) &&
    parameters.split(' ').every((text) => text === '' || harmlessParameter.test(text));
  if (!isSupported || tag === undefined || inline === undefined) return undefined;
  const keyAndSalt = Uint8Array.from(Buffer.from(inline, 'base64'));
  if (keyAndSalt.length !== keyBytes) return undefined;
  return { tag: Number(tag), key: { suite, keyAndSalt } };
}

/** The value of `a=crypto`. */
export function writeCrypto({ tag, key }: CryptoLine): string {
  return `${tag} ${key.suite} inline:${Buffer.from(key.keyAndSalt).toString('base64')}`;
}

/** Our lines for an offer, one for each suite. Each has a key of its own. */
export function newCryptoLines(): readonly CryptoLine[] {
  return srtpSuites.map((suite, index) => ({
    tag: index + 1,
    key: { suite, keyAndSalt: Uint8Array.from(randomBytes(keyBytes)) },
  }));
}

function isSuite(text: string | undefined): text is SrtpSuite {
  return srtpSuites.some((suite) => suite === text);
}
