// Builds messages that are derived from other messages: responses, CANCEL, and the ACK for a
// failure. It also stamps the Via of a request that has just arrived.

import type { SipPeer } from '../transport/sip-peer.ts';
import {
  addressTag,
  parseCseq,
  parseNameAddress,
  parseVia,
  splitOutsideQuotes,
} from './sip-grammar.ts';
import {
  headerValue,
  headerValues,
  type SipHeader,
  type SipRequest,
  type SipResponse,
  sortedHeaders,
} from './sip-message.ts';

export type ResponseExtras = {
  /** Added to the To header unless the request's To already contains a tag. */
  readonly toTag?: string;
  readonly headers?: readonly SipHeader[];
  readonly body?: string;
};

export function buildResponse(
  request: SipRequest,
  status: number,
  reason: string,
  extras: ResponseExtras,
): SipResponse {
  const headers: SipHeader[] = [];
  for (const value of headerValues(request, 'Via')) headers.push({ name: 'Via', value });
  // A response that creates a dialog repeats the Record-Route headers (RFC 3261 section 12.1.1).
  if (status > 100 && status < 300 && makesDialog(request.method)) {
    for (const value of headerValues(request, 'Record-Route')) {
      headers.push({ name: 'Record-Route', value });
    }
  }
  headers.push({ name: 'From', value: headerValue(request, 'From') ?? '' });
  headers.push({ name: 'To', value: toWithTag(headerValue(request, 'To') ?? '', extras.toTag) });
  headers.push({ name: 'Call-ID', value: headerValue(request, 'Call-ID') ?? '' });
  headers.push({ name: 'CSeq', value: headerValue(request, 'CSeq') ?? '' });
  const body = extras.body ?? '';
  headers.push(...(extras.headers ?? []));
  headers.push({ name: 'Content-Length', value: String(body.length) });
  return { kind: 'response', status, reason, headers: sortedHeaders(headers), body };
}

export function makesDialog(method: string): boolean {
  return method === 'INVITE' || method === 'SUBSCRIBE' || method === 'REFER';
}

function toWithTag(value: string, tag: string | undefined): string {
  return tag === undefined || addressTag(value) !== undefined ? value : `${value};tag=${tag}`;
}

/**
 * Per RFC 3261 section 17.1.1.3, the ACK has the INVITE's branch and route, and the response's To.
 */
export function buildAckForFailure(invite: SipRequest, response: SipResponse): SipRequest {
  return requestForInvite('ACK', invite, headerValue(response, 'To'), []);
}

/**
 * Per RFC 3261 section 9.1, the CANCEL contains the INVITE's own Via, so that the branch matches.
 */
export function buildCancel(invite: SipRequest, extra: readonly SipHeader[]): SipRequest {
  return requestForInvite('CANCEL', invite, undefined, extra);
}

function requestForInvite(
  method: string,
  invite: SipRequest,
  to: string | undefined,
  extra: readonly SipHeader[],
): SipRequest {
  const given = (name: string): string => headerValue(invite, name) ?? '';
  const cseq = parseCseq(given('CSeq'))?.number ?? 1;
  const headers: SipHeader[] = [
    { name: 'Via', value: given('Via') },
    ...headerValues(invite, 'Route').map((value) => ({ name: 'Route', value })),
    { name: 'Max-Forwards', value: '70' },
    { name: 'From', value: given('From') },
    { name: 'To', value: to ?? given('To') },
    { name: 'Call-ID', value: given('Call-ID') },
    { name: 'CSeq', value: `${cseq} ${method}` },
    ...extra,
    { name: 'Content-Length', value: '0' },
  ];
  return { kind: 'request', method, uri: invite.uri, headers: sortedHeaders(headers), body: '' };
}

/**
 * Returns true if the request contains all the headers that a response must repeat (RFC 3261
 * section 8.1.1).
 */
export function canBeAnswered(request: SipRequest): boolean {
  if (parseVia(headerValue(request, 'Via') ?? '') === undefined) return false;
  return ['From', 'To', 'Call-ID', 'CSeq'].every(
    (name) => headerValue(request, name) !== undefined,
  );
}

/** Checks everything that the rest of the engine takes for granted. */
export function isWellFormed(request: SipRequest): boolean {
  const cseq = parseCseq(headerValue(request, 'CSeq') ?? '');
  if (cseq === undefined || cseq.method !== request.method) return false;
  const from = headerValue(request, 'From') ?? '';
  if (parseNameAddress(from) === undefined) return false;
  if (parseNameAddress(headerValue(request, 'To') ?? '') === undefined) return false;
  if (!isOneField(headerValue(request, 'Call-ID') ?? '')) return false;
  if (!isOneField(addressTag(from) ?? '-')) return false;
  return parseVia(headerValue(request, 'Via') ?? '') !== undefined;
}

/**
 * The Call-ID and the tags become fields in drachtio's protocol, so they can't contain its
 * separator. SIP's grammar doesn't allow that character there anyway.
 */
function isOneField(text: string): boolean {
  return text !== '' && !/[|\s]/.test(text);
}

/**
 * Stamps the Via per RFC 3581. Like drachtio-server, we add rport even if the peer hasn't asked for
 * it.
 */
export function stampVia(request: SipRequest, peer: SipPeer): SipRequest {
  const index = request.headers.findIndex((header) => header.name === 'Via');
  const value = request.headers[index]?.value;
  if (value === undefined) return request;
  const entries = splitOutsideQuotes(value, ',');
  const first = entries[0] ?? '';
  const via = parseVia(first);
  if (via === undefined) return request;
  const kept = splitOutsideQuotes(first, ';')
    .filter((part, position) => position === 0 || !/^\s*(received)\s*=/i.test(part))
    .map((part, position) =>
      position > 0 && /^\s*rport\s*(=|$)/i.test(part) ? `rport=${peer.port}` : part,
    );
  if (via.host !== peer.address) kept.push(`received=${peer.address}`);
  if (!via.parameters.has('rport')) kept.push(`rport=${peer.port}`);
  entries[0] = kept.join(';');
  const headers = [...request.headers];
  headers[index] = { name: 'Via', value: entries.join(',') };
  return { ...request, headers };
}
