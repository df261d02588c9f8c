// Sends a request, and repeats it with credentials if the far end challenges it. srf's own digest
// client isn't used: it knows only MD5, and answers only one challenge. An INVITE whose session
// interval is too small (422) is repeated in the same way, once.
//
// The repetition is a new transaction with the same Call-ID and From tag and the next CSeq (RFC
// 3261, 22.2). Within a dialog, the engine fills in all of these.

import { isIP } from 'node:net';
import { requestFrameBytes } from '../engine/control-frame.ts';
import type { EngineLink, RequestResult } from '../engine/engine-link.ts';
import { maxFrameBytes } from '../engine/sip-limits.ts';
import type {
  AckFunction,
  ReceivedResponse,
  RequestOptions,
  SentRequest,
} from '../engine/srf-types.ts';
import { cseqNumber, hostOf } from '../sip-headers.ts';
import { bracketed } from '../trunks/trunk-uris.ts';
import type { DigestClient, DigestExchange, FinalReason } from './digest-client.ts';

export type Authentication = {
  /** Undefined if there are no credentials, so that every challenge is final. */
  readonly client: DigestClient | undefined;
  /**
   * Returns false once we've given up on the request. If we still answered the challenge to an
   * INVITE, a phone would ring for a call that no longer exists. Default: the request is wanted.
   */
  readonly isWanted?: () => boolean;
  /**
   * Called once with a final response other than a 2xx or a challenge. Returns the headers with
   * which to repeat the request, or undefined if the response stands.
   */
  readonly correct?: (response: ReceivedResponse) => Readonly<Record<string, string>> | undefined;
};

/** Why a 401 or 407 was passed on instead of answered. */
export type Unanswered = FinalReason | 'no credentials' | 'not wanted' | 'too large';

export type AnsweredRequestUser = {
  /**
   * Called with the engine's reply to the request, and again with the reply to each repetition. If
   * the engine doesn't send a repetition, `onResponse` gets the challenge instead.
   */
  onReply(result: RequestResult): void;
  /** Called before the request is repeated. Until the next `onReply`, no transaction is pending. */
  onRepeat?(): void;
  /** `ack` adds the INVITE's credentials to the ACK for a 2xx (RFC 3261, 22.1). */
  onResponse(response: ReceivedResponse, ack: AckFunction, unanswered?: Unanswered): void;
};

export function sendAnswered(
  link: EngineLink,
  options: RequestOptions,
  authentication: Authentication,
  user: AnsweredRequestUser,
): void {
  new AnsweredRequest(link, options, authentication, user).send(
    knownCredentials(options, authentication.client),
  );
}

/**
 * Returns credentials with a nonce that's known from an earlier request, if they fit. Returns
 * nothing within a dialog, because the engine chooses the request URI, which we learn afterwards.
 */
function knownCredentials(
  options: RequestOptions,
  client: DigestClient | undefined,
): Readonly<Record<string, string>> {
  const { method, uri, body = '', stackDialogId, headers } = options;
  if (client === undefined || stackDialogId !== undefined || uri === undefined) return {};
  const known = client.headersFor({ method, uri, body });
  const bytes = requestFrameBytes({ ...options, headers: { ...headers, ...known } });
  return bytes > maxFrameBytes ? {} : known;
}

class AnsweredRequest {
  readonly #link: EngineLink;
  #options: RequestOptions;
  #isCorrected = false;
  readonly #authentication: Authentication;
  readonly #exchange: DigestExchange | undefined;
  readonly #user: AnsweredRequestUser;

  constructor(
    link: EngineLink,
    options: RequestOptions,
    authentication: Authentication,
    user: AnsweredRequestUser,
  ) {
    this.#link = link;
    this.#options = options;
    this.#authentication = authentication;
    this.#exchange = authentication.client?.begin();
    this.#user = user;
  }

  send(credentials: Readonly<Record<string, string>>): void {
    const { headers } = this.#options;
    const options = { ...this.#options, headers: { ...headers, ...credentials } };
    this.#request(options, credentials, undefined);
  }

  #request(
    options: RequestOptions,
    credentials: Readonly<Record<string, string>>,
    challenge: Challenged | undefined,
  ): void {
    this.#link.request(options, (result) => {
      if (!result.ok && challenge !== undefined) {
        this.#user.onResponse(challenge.response, challenge.ack);
        return;
      }
      this.#user.onReply(result);
      if (!result.ok) return;
      const { request } = result;
      request.on('response', (response, ack) => {
        if (response.status === 401 || response.status === 407) {
          this.#onChallenge({ request, response, ack });
        } else if (!this.#correct({ request, response, ack }))
          this.#user.onResponse(response, withCredentials(ack, response, credentials));
      });
    });
  }

  /**
   * Repeats the request with corrected headers. That's a new transaction, like a repetition with
   * credentials, and any further challenge is answered with the same headers.
   *
   * @returns false if the response stands
   */
  #correct(refused: Challenged): boolean {
    const { request, response } = refused;
    const { client, correct, isWanted } = this.#authentication;
    if (response.status < 300 || this.#isCorrected || isWanted?.() === false) return false;
    const corrected = correct?.(response);
    if (corrected === undefined) return false;
    this.#isCorrected = true;
    this.#exchange?.noteAccepted();
    const headers = { ...this.#options.headers, ...corrected };
    const { method, body = '' } = this.#options;
    const credentials = client?.headersFor({ method, uri: request.uri, body }) ?? {};
    const options = repetition({ ...this.#options, headers }, request, response, credentials);
    if (requestFrameBytes(options) > maxFrameBytes) return false;
    this.#options = { ...this.#options, headers };
    this.#user.onRepeat?.();
    this.#request(options, credentials, refused);
    return true;
  }

  #onChallenge(challenge: Challenged): void {
    const repeated = this.#answer(challenge);
    if (typeof repeated === 'string') {
      this.#user.onResponse(challenge.response, challenge.ack, repeated);
      return;
    }
    this.#user.onRepeat?.();
    this.#request(repeated.options, repeated.credentials, challenge);
  }

  /** Returns the request to send, or why the challenge isn't answered. */
  #answer({ request, response }: Challenged): Repetition | Unanswered {
    if (this.#exchange === undefined) return 'no credentials';
    if (this.#authentication.isWanted?.() === false) return 'not wanted';
    const { method, body = '' } = this.#options;
    const answer = this.#exchange.answer(response, { method, uri: request.uri, body });
    if (answer.kind === 'final') return answer.why;
    const options = repetition(this.#options, request, response, answer.headers);
    if (requestFrameBytes(options) > maxFrameBytes) return 'too large';
    return { options, credentials: answer.headers };
  }
}

type Challenged = {
  readonly request: SentRequest;
  readonly response: ReceivedResponse;
  readonly ack: AckFunction;
};

type Repetition = {
  readonly options: RequestOptions;
  readonly credentials: Readonly<Record<string, string>>;
};

function repetition(
  options: RequestOptions,
  request: SentRequest,
  response: ReceivedResponse,
  credentials: Readonly<Record<string, string>>,
): RequestOptions {
  if (options.stackDialogId !== undefined) {
    return { ...options, headers: { ...options.headers, ...credentials } };
  }
  const given = Object.entries(options.headers ?? {}).filter(
    ([name]) => !['from', 'call-id', 'cseq'].includes(name.toLowerCase()),
  );
  const nextHop = sameNextHop(options, response);
  return {
    ...options,
    headers: {
      ...Object.fromEntries(given),
      From: request.get('From') ?? '',
      'Call-ID': request.get('Call-ID') ?? '',
      CSeq: `${(cseqNumber(request.get('CSeq')) ?? 0) + 1} ${options.method}`,
      ...credentials,
    },
    ...(nextHop !== undefined && { proxy: nextHop }),
  };
}

/**
 * Returns the server that sent the challenge, because another server behind the same host name may
 * not know its nonce. Over TLS we keep the name, which the server's certificate must match.
 *
 * @returns undefined if the next hop is given by the options
 */
function sameNextHop({ proxy, uri }: RequestOptions, response: ReceivedResponse) {
  const nextHop = proxy ?? uri;
  const host = hostOf(nextHop)?.replace(/^\[(.*)\]$/, '$1') ?? '';
  const transport = /;transport=([^;?\s]+)/i.exec(nextHop ?? '')?.[1]?.toLowerCase();
  const isSecure = transport === 'tls' || /^sips:/i.test(nextHop ?? '');
  const { source_address: address, source_port: port } = response;
  if (isIP(host) !== 0 || isSecure || address === '') return proxy;
  const parameter = transport === undefined ? '' : `;transport=${transport}`;
  return `sip:${bracketed(address)}:${port}${parameter}`;
}

function withCredentials(
  ack: AckFunction,
  response: ReceivedResponse,
  headers: Readonly<Record<string, string>>,
): AckFunction {
  const isAnswer = response.status >= 200 && response.status < 300;
  if (!isAnswer || Object.keys(headers).length === 0) return ack;
  return (options) => ack({ ...options, headers });
}

/** Returns the response's reason phrase, and for a challenge, what the operator has to correct. */
export function refusalReason(
  { reason }: Pick<ReceivedResponse, 'reason'>,
  unanswered: Unanswered | undefined,
): string {
  if (unanswered === 'unsupported') {
    return `${reason} (no digest challenge that the gateway supports)`;
  }
  return unanswered === 'refused' ? `${reason} (the credentials were refused)` : reason;
}
