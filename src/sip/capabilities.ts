// What the gateway can do, in the words of its requests and responses. RFC 3261 recommends Allow
// and Supported in an INVITE and in its 2xx (sections 13.2.1 and 13.3.1.4), and requires Allow in a
// 405 (section 8.2.1).

import type { SipMessage } from './engine/srf-types.ts';

/** The methods that the gateway answers with something other than 405 or 501. */
const allow = 'INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, PRACK, NOTIFY';
/** The extensions that both engines and the gateway handle (RFC 3262 and RFC 4028). */
const extensions = ['100rel', 'timer'];

export const capabilityHeaders = { Allow: allow, Supported: extensions.join(', ') } as const;

/** The bodies that the gateway reads: offers and answers, and keys in an INFO. */
export const acceptedTypes = {
  Accept: 'application/sdp, application/dtmf-relay, application/dtmf',
} as const;

export const allowHeader = { Allow: allow } as const;

// A Require header has a handful of option tags. The Unsupported header of the response must fit
// into a control frame, whatever the far end has sent.
const maxListed = 20;
const maxTagLength = 64;

/**
 * Returns the headers of a 420 if the request requires an extension that the gateway doesn't have
 * (RFC 3261 section 8.2.2.3). Don't call this for ACK and CANCEL, which can't be refused.
 *
 * @returns undefined if the gateway has all extensions that the request requires
 */
export function missingExtensions(
  request: SipMessage,
): { readonly Unsupported: string } | undefined {
  const required = (request.get('Require') ?? '').split(',').map((tag) => tag.trim());
  const missing = required.filter((tag) => tag !== '' && !extensions.includes(tag.toLowerCase()));
  if (missing.length === 0) return undefined;
  const listed = missing.slice(0, maxListed).map((tag) => tag.slice(0, maxTagLength));
  return { Unsupported: listed.join(', ') };
}
