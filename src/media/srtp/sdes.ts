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

/**
 * A line, without `a=crypto:`. The key and its salt are 30 bytes, which base64 writes without
 * padding. A lifetime in packets (`|2^20`) may follow. The line isn't usable with several keys or
 * with an MKI in each packet (`|1:4`), which we don't support.
 */
const cryptoLine =
  /^(\d{1,9}) +([A-Z0-9_]{1,64}) +inline:([A-Za-z0-9+/]{40})(?:\|(?:2\^)?[1-9]\d{0,15})?((?: .*)?)$/;
/**
 * A hint about the sender's window, or a parameter that the far end declares as optional (RFC 4568,
 * section 6.3.7). Any other parameter turns off encryption or authentication, or derives other
 * keys, so we can't accept the line.
 */
const harmlessParameter = /^(?:WSH=\d+|-.+)$/;

/** @returns undefined if we don't support what the line asks for */
export function readCrypto(value: string): CryptoLine | undefined {
  const [, tag, suite, inline, parameters = ''] = cryptoLine.exec(value.trim()) ?? [];
  if (tag === undefined || inline === undefined || !isSuite(suite)) return undefined;
  const isHarmless = parameters
    .split(' ')
    .every((text) => text === '' || harmlessParameter.test(text));
  if (!isHarmless) return undefined;
  return {
    tag: Number(tag),
    key: { suite, keyAndSalt: Uint8Array.from(Buffer.from(inline, 'base64')) },
  };
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
