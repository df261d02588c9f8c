// Builds the INVITE for the engine, and supplies the digest credentials that srf needs to answer a
// challenge. The request URI, From and the trunk's headers come from the `Route` that
// `trunks/routing.ts` creates.

import { maxFrameBytes } from '../engine/sip-limits.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Credentials, Route } from '../trunks/routing.ts';

// One retry answers the challenge itself, and we allow another in case the nonce has gone stale in
// the meantime. Without this limit, srf would never stop answering a gateway that sends a
// provisional response between its challenges.
const maxChallenges = 2;

/**
 * Allowance for what srf adds to the repeated request, apart from the values in the challenge:
 * parameter names, cnonce, response, Call-ID, CSeq and tag.
 */
const digestOverheadBytes = 600;

/**
 * Allowance for the frame around the message: length, message id, transaction id, dialog id and
 * separators.
 */
const frameOverheadBytes = 120;

export type ChallengeHandling = {
  /**
   * Returns false once we've given up on the call. If we still answered the challenge, a phone
   * would ring for a call that no longer exists.
   */
  isWanted(): boolean;
  /**
   * Called if the request with our credentials wouldn't fit into a control frame. The challenge
   * then becomes the final response.
   */
  onTooLarge(): void;
};

export function inviteOptions(
  route: Route,
  offerSdp: string,
  challenges: ChallengeHandling,
): RequestOptions {
  const options: RequestOptions = {
    method: 'INVITE',
    uri: route.requestUri,
    headers: {
      ...route.headers,
      From: route.from,
      To: route.to,
      Allow: 'INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, PRACK',
      'Content-Type': 'application/sdp',
    },
    body: offerSdp,
    ...(route.nextHop !== undefined && { proxy: route.nextHop }),
  };
  return route.credentials === undefined
    ? options
    : withCredentials(options, route.credentials, challenges);
}

/**
 * Merges an application's headers with those of the call's trunk. The trunk's headers may contain
 * an account or identity that the carrier uses for billing, so an application may only replace the
 * ones that the trunk lists in `passHeaders`.
 */
export function mergeHeaders(
  { headers, passHeaders = [] }: Route,
  added: Readonly<Record<string, string>> = {},
): Route['headers'] {
  const isOwn = (name: string) => !passHeaders.includes(name.toLowerCase());
  const kept = new Set(Object.keys(headers).filter(isOwn).map(lowerCase));
  const taken = Object.entries(added).filter(([name]) => !kept.has(lowerCase(name)));
  const replaced = new Set(taken.map(([name]) => lowerCase(name)));
  const own = Object.entries(headers).filter(([name]) => !replaced.has(lowerCase(name)));
  return Object.fromEntries([...own, ...taken]);
}

const lowerCase = (name: string): string => name.toLowerCase();

/**
 * Returns an upper bound for the size of the control frame. Srf itself doesn't check the size, and
 * an oversized frame would stall the connection.
 */
export function requestFrameBytes(options: RequestOptions): number {
  const headers = Object.entries(options.headers ?? {}).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const text = [options.method, options.uri, options.proxy, ...headers, options.body].join('');
  return (
    Buffer.byteLength(text) + Buffer.byteLength(options.stackDialogId ?? '') + frameOverheadBytes
  );
}

/** Adds the credentials, so that srf can answer a challenge to this request. */
export function withCredentials(
  options: RequestOptions,
  { username, password }: Credentials,
  handling: ChallengeHandling,
): RequestOptions {
  const requestBytes = requestFrameBytes(options) + Buffer.byteLength(options.uri ?? '');
  let challenges = 0;
  options.auth = (_request, response, callback) => {
    challenges += 1;
    const name = response.status === 407 ? 'Proxy-Authenticate' : 'WWW-Authenticate';
    const challengeBytes = Buffer.byteLength(response.get(name) ?? '');
    if (challenges > maxChallenges) callback(new Error('challenged too often'));
    else if (!handling.isWanted()) callback(new Error('given up'));
    else if (requestBytes + challengeBytes + digestOverheadBytes > maxFrameBytes) {
      handling.onTooLarge();
      callback(new Error('challenge too large'));
    } else callback(null, username, password);
  };
  keepNextHopUsable(options);
  return options;
}

/**
 * Srf sends the repeated request to the address that the challenge came from. If that's an IPv6
 * address, srf forgets the brackets, so this setter adds them.
 */
function keepNextHopUsable(options: RequestOptions): void {
  let nextHop = options.proxy;
  Object.defineProperty(options, 'proxy', {
    enumerable: true,
    get: () => nextHop,
    set: (uri: string) => {
      nextHop = uri.replace(
        /^(sips?:)([0-9a-f]*:[0-9a-f:.]+):(\d+)(;|$)/i,
        (_match, scheme: string, address: string, port: string, end: string) =>
          `${scheme}[${address}]:${port}${end}`,
      );
    },
  });
}
