// The client side of digest authentication for one call or one registration: which challenges to
// answer, how often, and which nonces may be used again (RFC 3261, 22.2 and 22.3; RFC 8760, 2.4).

import { randomBytes } from 'node:crypto';
import type { ReceivedResponse } from '../engine/srf-types.ts';
import type { Credentials } from '../trunks/routing.ts';
import { parseChallenges } from './challenge.ts';
import {
  type AnswerableChallenge,
  type DigestRequest,
  digestCredentials,
  isAnswerable,
} from './digest-response.ts';

/**
 * How often one request is repeated with credentials. Two realms (a carrier's edge and its
 * registrar) may challenge one after the other, and the nonce of each may expire in the meantime.
 */
export const maxRepetitions = 4;

/**
 * Number of realms whose credentials go into a request. That's more than any carrier has, and the
 * credentials for each take some 300 of the 4,036 bytes of a control frame.
 */
const maxRealms = 4;

export type Answer =
  /** The headers to add to the repeated request. */
  | { readonly kind: 'credentials'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'final'; readonly why: FinalReason };

/** Why a 401 or 407 is the final response. */
export type FinalReason = 'unsupported' | 'refused' | 'too often';

type KnownNonce = {
  readonly header: 'Authorization' | 'Proxy-Authorization';
  readonly challenge: AnswerableChallenge;
  /** Stays the same for as long as the nonce is used, because `-sess` hashes it only once. */
  readonly cnonce: string;
  uses: number;
};

export class DigestClient {
  readonly #credentials: Credentials;
  /** The last challenge of each realm, by header and realm. */
  readonly #known = new Map<string, KnownNonce>();

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /** Begins a request. Each request has its own exchange of challenges and answers. */
  begin(): DigestExchange {
    return new DigestExchange(this);
  }

  /** Keeps a realm's challenge, so that this and later requests answer it. */
  learn(key: string, header: KnownNonce['header'], challenge: AnswerableChallenge): void {
    const known = this.#known.get(key);
    // The same nonce again: its count must go on (RFC 7616, 3.4).
    const isSame = known?.challenge.nonce === challenge.nonce;
    this.#known.delete(key);
    this.#known.set(key, {
      ...{ header, challenge },
      cnonce: isSame ? known.cnonce : randomBytes(16).toString('hex'),
      uses: isSame ? known.uses : 0,
    });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxRealms && oldest !== undefined) this.#known.delete(oldest);
  }

  /**
   * Returns the headers with the credentials for every realm that has challenged us so far. Each
   * realm needs a header line of its own (RFC 3261, 7.3.1). As srf writes a value unchanged, the
   * further lines are part of the first one's value.
   */
  headersFor(request: DigestRequest): Readonly<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (const known of this.#known.values()) {
      known.uses += 1;
      const use = { count: known.uses, cnonce: known.cnonce };
      const value = digestCredentials(known.challenge, this.#credentials, request, use);
      const earlier = headers[known.header];
      headers[known.header] =
        earlier === undefined ? value : `${earlier}\r\n${known.header}: ${value}`;
    }
    return headers;
  }
}

/** One request and its repetitions. */
export class DigestExchange {
  readonly #client: DigestClient;
  /** The nonces that we've answered in this exchange, by header and realm. */
  readonly #answered = new Map<string, { readonly nonce: string; wasAccepted: boolean }>();
  #repetitions = 0;

  constructor(client: DigestClient) {
    this.#client = client;
  }

  /** Answers a 401 or 407 to `request`, which is the request as it was sent. */
  answer(response: Pick<ReceivedResponse, 'get'>, request: DigestRequest): Answer {
    const challenges = [
      ...keyed(response.get('WWW-Authenticate'), 'Authorization'),
      ...keyed(response.get('Proxy-Authenticate'), 'Proxy-Authorization'),
    ];
    const challenged = new Set(challenges.map(({ key }) => key));
    // A challenge from another realm means that the request got past this one.
    this.noteAccepted((key) => !challenged.has(key));
    const chosen = firstOfEach(challenges);
    if (chosen.length === 0) return { kind: 'final', why: 'unsupported' };
    if (!chosen.every(({ key, challenge }) => this.#mayAnswer(key, challenge))) {
      return { kind: 'final', why: 'refused' };
    }
    if (this.#repetitions === maxRepetitions) return { kind: 'final', why: 'too often' };
    this.#repetitions += 1;
    for (const { key, header, challenge } of chosen) {
      this.#client.learn(key, header, challenge);
      this.#answered.set(key, { nonce: challenge.nonce, wasAccepted: false });
    }
    return { kind: 'credentials', headers: this.#client.headersFor(request) };
  }

  /**
   * Notes that the credentials so far were accepted, because the response came from behind the
   * realms that had challenged them.
   */
  noteAccepted(isAccepted: (key: string) => boolean = () => true): void {
    for (const [key, answered] of this.#answered) {
      if (isAccepted(key)) answered.wasAccepted = true;
    }
  }

  /**
   * The same credentials are sent to a realm a second time only if it refused no more than the
   * nonce. Otherwise the password is wrong, and trying again may lock the account.
   */
  #mayAnswer(key: string, challenge: AnswerableChallenge): boolean {
    const answered = this.#answered.get(key);
    if (answered === undefined) return true;
    const isNonceRefused = challenge.isStale || answered.wasAccepted;
    return isNonceRefused && challenge.nonce !== answered.nonce;
  }
}

type KeyedChallenge = Pick<KnownNonce, 'header' | 'challenge'> & { readonly key: string };

/** Returns the challenges that we support, with the header in which to answer them. */
function keyed(value: string | undefined, header: KnownNonce['header']): readonly KeyedChallenge[] {
  return parseChallenges(value)
    .filter(isAnswerable)
    .map((challenge) => ({ header, challenge, key: `${header} ${challenge.realm}` }));
}

/** Returns each realm's first challenge, which is the one that it prefers (RFC 8760, 2.4). */
function firstOfEach(challenges: readonly KeyedChallenge[]): readonly KeyedChallenge[] {
  const first = new Map<string, KeyedChallenge>();
  for (const challenge of challenges) {
    if (!first.has(challenge.key)) first.set(challenge.key, challenge);
  }
  return [...first.values()];
}
