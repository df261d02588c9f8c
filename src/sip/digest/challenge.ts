// Parses the challenges in WWW-Authenticate and Proxy-Authenticate (RFC 3261, 22.1; RFC 7616,
// 3.3). The far end controls every byte, so the parser never throws, reads a header in one pass,
// and keeps only values that can be written back inside quotes.

import { getHashes } from 'node:crypto';

export type DigestAlgorithm = {
  /** Name of the hash in node:crypto. */
  readonly hash: string;
  /** `-sess`: the hashed secret also covers the first nonce and cnonce (RFC 7616, 3.4.2). */
  readonly isSession: boolean;
};

export type DigestChallenge = {
  /**
   * Realm, nonce and opaque as they arrived between the quotes, with their backslashes. They are
   * hashed and written back in this form, as other clients do.
   */
  readonly realm: string;
  readonly nonce: string;
  readonly opaque: string | undefined;
  /** Undefined if the far end doesn't state its algorithm or we don't support it. */
  readonly algorithm: DigestAlgorithm | undefined;
  /** As it arrived. Undefined means MD5. */
  readonly algorithmName: string | undefined;
  /** `unsupported` if the far end offers only kinds of protection that we don't know. */
  readonly qop: 'auth' | 'auth-int' | 'unsupported' | undefined;
  /** True if only the nonce was refused, because it had expired. */
  readonly isStale: boolean;
  /** True if the far end wants the username hashed (RFC 7616, 3.4.4). */
  readonly hashesUsername: boolean;
};

/**
 * A control frame fits 4,036 bytes, so the answer to a challenge of this length wouldn't fit
 * anyway. A header may contain several challenges.
 */
const maxHeaderLength = 16_384;

/** One for each of the six algorithms, for two realms, and some to spare for other schemes. */
const maxChallenges = 16;

/** The names in the registry for digest, in lower case, with their names in node:crypto. */
const hashNames = [
  ['md5', 'md5'],
  ['sha-256', 'sha256'],
  ['sha-512-256', 'sha512-256'],
] as const;

/** By name. An OpenSSL for regulated environments may lack MD5. */
const algorithms = supportedAlgorithms();

/**
 * Returns the digest challenges in the far end's order, which is its order of preference (RFC 8760,
 * 2.4). `header` may contain several header lines, which drachtio-srf joins with commas. Challenges
 * of other schemes, and those without a usable realm or nonce, are omitted.
 */
export function parseChallenges(header: string | undefined): readonly DigestChallenge[] {
  if (header === undefined || header.length > maxHeaderLength) return [];
  return schemesOf(header).flatMap(({ scheme, parameters }) => {
    const challenge = scheme === 'digest' ? digestOf(parameters) : undefined;
    return challenge === undefined ? [] : [challenge];
  });
}

type Scheme = { readonly scheme: string; readonly parameters: ReadonlyMap<string, string> };

/**
 * Splits a header into schemes and their parameters. Commas separate both, so a word without `=` is
 * what starts the next scheme.
 */
function schemesOf(header: string): readonly Scheme[] {
  const text = header.replace(/\r?\n[ \t]+/g, ' ');
  const part = /[\s,]*([^\s,="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/sy;
  const schemes: Scheme[] = [];
  let parameters = new Map<string, string>();
  let end = 0;
  for (let found = part.exec(text); found !== null; found = part.exec(text)) {
    end = part.lastIndex;
    const [, word = '', quoted, plain] = found;
    const value = quoted ?? plain;
    if (value === undefined) {
      if (schemes.length === maxChallenges) return schemes;
      parameters = new Map();
      schemes.push({ scheme: word.toLowerCase(), parameters });
    } else if (!parameters.has(word.toLowerCase())) parameters.set(word.toLowerCase(), value);
  }
  // A quote without an end makes the rest of the header part of a value.
  const isComplete = /^[\s,]*$/.test(text.slice(end));
  return isComplete ? schemes : schemes.slice(0, -1);
}

function digestOf(parameters: Scheme['parameters']): DigestChallenge | undefined {
  const realm = parameters.get('realm');
  const nonce = parameters.get('nonce');
  const opaque = parameters.get('opaque');
  if (realm === undefined || nonce === undefined || nonce === '') return undefined;
  if (![realm, nonce, opaque ?? ''].every(fitsQuotes)) return undefined;
  const algorithmName = parameters.get('algorithm');
  return {
    ...{ realm, nonce, opaque, algorithmName },
    algorithm: algorithms.get((algorithmName ?? 'MD5').toLowerCase()),
    qop: qopOf(parameters.get('qop')),
    isStale: parameters.get('stale')?.toLowerCase() === 'true',
    hashesUsername: parameters.get('userhash')?.toLowerCase() === 'true',
  };
}

/** Returns whether a value in quotes ends where its own quotes do, without a line break. */
function fitsQuotes(value: string): boolean {
  return /^(?:[^"\\\p{Cc}]|\\[^\p{Cc}])*$/u.test(value);
}

/** Prefers `auth`, because intermediaries may change a body and with it the hash of `auth-int`. */
function qopOf(value: string | undefined): DigestChallenge['qop'] {
  const offered = (value ?? '').toLowerCase().split(/[\s,]+/);
  if (offered.includes('auth')) return 'auth';
  if (offered.includes('auth-int')) return 'auth-int';
  return offered.every((item) => item === '') ? undefined : 'unsupported';
}

function supportedAlgorithms(): ReadonlyMap<string, DigestAlgorithm> {
  const available = new Set(getHashes());
  const supported = new Map<string, DigestAlgorithm>();
  for (const [name, hash] of hashNames) {
    if (!available.has(hash)) continue;
    supported.set(name, { hash, isSession: false });
    supported.set(`${name}-sess`, { hash, isSession: true });
  }
  return supported;
}
