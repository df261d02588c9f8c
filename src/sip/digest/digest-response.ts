// Computes the credentials that answer a digest challenge (RFC 7616, 3.4).

import { createHash } from 'node:crypto';
import type { Credentials } from '../trunks/routing.ts';
import type { DigestAlgorithm, DigestChallenge } from './challenge.ts';

/** The parts of a request that the response covers. */
export type DigestRequest = {
  readonly method: string;
  /** The request URI as it's sent. */
  readonly uri: string;
  readonly body: string;
};

export type AnswerableChallenge = DigestChallenge & {
  readonly algorithm: DigestAlgorithm;
  readonly qop: 'auth' | 'auth-int' | undefined;
};

/** How often a nonce has been used, this time included, and our own nonce that goes with it. */
export type NonceUse = { readonly count: number; readonly cnonce: string };

export function isAnswerable(challenge: DigestChallenge): challenge is AnswerableChallenge {
  return challenge.algorithm !== undefined && challenge.qop !== 'unsupported';
}

/** Returns the value of an Authorization or Proxy-Authorization header. */
export function digestCredentials(
  challenge: AnswerableChallenge,
  { username, password }: Credentials,
  request: DigestRequest,
  { count, cnonce }: NonceUse,
): string {
  const { realm, nonce, opaque, algorithm, algorithmName, qop } = challenge;
  const hash = (text: string) => createHash(algorithm.hash).update(text).digest('hex');
  const secret = hash(`${username}:${realm}:${password}`);
  const first = algorithm.isSession ? hash(`${secret}:${nonce}:${cnonce}`) : secret;
  const covered = `${request.method}:${request.uri}`;
  const second = hash(qop === 'auth-int' ? `${covered}:${hash(request.body)}` : covered);
  const nc = count.toString(16).padStart(8, '0');
  const protection = qop === undefined ? '' : `${nc}:${cnonce}:${qop}:`;
  const sentName = challenge.hashesUsername ? hash(`${username}:${realm}`) : escaped(username);
  const parameters = [
    `username="${sentName}"`,
    `realm="${realm}"`,
    `nonce="${nonce}"`,
    `uri="${escaped(request.uri)}"`,
    `response="${hash(`${first}:${nonce}:${protection}${second}`)}"`,
    ...(algorithmName === undefined ? [] : [`algorithm=${algorithmName}`]),
    ...(opaque === undefined ? [] : [`opaque="${opaque}"`]),
    ...(qop === undefined ? [] : [`qop=${qop}`, `nc=${nc}`]),
    // Without qop, only `-sess` needs the cnonce, because its secret covers it.
    ...(qop === undefined && !algorithm.isSession ? [] : [`cnonce="${cnonce}"`]),
    ...(challenge.hashesUsername ? ['userhash=true'] : []),
  ];
  return `Digest ${parameters.join(', ')}`;
}

/** Escapes a value for quotes. Control characters would end the header, so they are removed. */
function escaped(value: string): string {
  return value.replace(/\p{Cc}/gu, '').replace(/["\\]/g, '\\$&');
}
