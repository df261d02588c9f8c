// Builds requests outside a dialog. They're based on an application's sketch, and follow the same
// rules as in drachtio-server.

import type { SipText } from '../control/control-messages.ts';
import { appHeaders, contentTypeOf } from '../dialog/app-headers.ts';
import type { SipProtocol } from '../transport/sip-peer.ts';
import { type LocalIdentity, localUri, viaValue } from './local-identity.ts';
import { requestPath, usableRoutes } from './request-path.ts';
import { addressTag, formatNameAddress, parseCseq, parseNameAddress } from './sip-grammar.ts';
import { headerValues, type SipHeader, type SipRequest, sortedHeaders } from './sip-message.ts';
import { unescapeUser } from './sip-uri-user.ts';

export const knownMethods: ReadonlySet<string> = new Set([
  'INVITE',
  'ACK',
  'CANCEL',
  'BYE',
  'OPTIONS',
  'REGISTER',
  'INFO',
  'PRACK',
  'UPDATE',
  'MESSAGE',
  'SUBSCRIBE',
  'NOTIFY',
  'REFER',
  'PUBLISH',
]);

export type RequestLine = { readonly method: string; readonly uri: string };

export function parseSketchLine(line: string): RequestLine | undefined {
  const parts = line.split(' ');
  const [method, uri, version] = parts;
  if (parts.length !== 3 || version !== 'SIP/2.0' || uri === undefined || uri === '')
    return undefined;
  if (method === undefined || !knownMethods.has(method)) return undefined;
  return { method, uri: unescapeUser(uri) };
}

export type BuiltRequest =
  | {
      readonly kind: 'request';
      readonly request: SipRequest;
      readonly fromTag: string;
      readonly callId: string;
      readonly cseq: number;
      readonly contact: string;
    }
  | { readonly kind: 'refused'; readonly reason: string };

export type BuildContext = {
  readonly local: LocalIdentity;
  readonly protocol: SipProtocol;
  readonly branch: string;
  readonly newTag: () => string;
  readonly newCallId: () => string;
  readonly firstCseq: number;
};

const engineBuilt: ReadonlySet<string> = new Set([
  'From',
  'To',
  'Call-ID',
  'CSeq',
  'Max-Forwards',
  'Contact',
  'Content-Type',
]);

export function buildRequest(
  line: RequestLine,
  sketch: SipText,
  context: BuildContext,
): BuiltRequest {
  const given = appHeaders(sketch, context.local, engineBuilt);
  const contact = given.get('Contact') ?? `<${localUri(context.local, context.protocol)}>`;
  const from = fromHeader(given.get('From'), contact, context);
  if (from === undefined) {
    const reason = `invalid from value provided by client: ${given.get('From')}`;
    return { kind: 'refused', reason };
  }
  const contentType = contentTypeOf(given.get('Content-Type'), sketch.body);
  if (sketch.body !== '' && contentType === undefined) {
    return { kind: 'refused', reason: 'missing content-type' };
  }
  const path = requestPath(line.uri, line.method === 'BYE' ? routesOf(sketch) : []);
  const ids = {
    fromTag: from.tag,
    callId: given.get('Call-ID') ?? context.newCallId(),
    cseq: parseCseq(given.get('CSeq') ?? '')?.number ?? context.firstCseq,
    contact,
  };
  const headers: SipHeader[] = [
    { name: 'Via', value: viaValue(context.local, context.protocol, context.branch) },
    ...path.routes.map((value) => ({ name: 'Route', value })),
    { name: 'Max-Forwards', value: given.get('Max-Forwards') ?? '70' },
    { name: 'From', value: from.value },
    { name: 'To', value: given.get('To') ?? toFromUri(line.uri) },
    { name: 'Call-ID', value: ids.callId },
    { name: 'CSeq', value: `${ids.cseq} ${line.method}` },
    ...contactHeader(line.method, given.get('Contact'), contact),
    ...given.headers,
    ...(contentType === undefined ? [] : [{ name: 'Content-Type', value: contentType }]),
    { name: 'Content-Length', value: String(sketch.body.length) },
  ];
  const { method } = line;
  const { uri } = path;
  const body = sketch.body;
  const request = { kind: 'request', method, uri, headers: sortedHeaders(headers), body } as const;
  return { kind: 'request', request, ...ids };
}

/**
 * An application may end a call that the engine doesn't know, e.g. after a restart of the engine,
 * and it knows the call's route. Otherwise the engine drops the application's Route headers, as
 * drachtio-server always does.
 */
function routesOf(sketch: SipText): string[] {
  return usableRoutes(headerValues(sketch, 'Route'));
}

function contactHeader(method: string, given: string | undefined, contact: string): SipHeader[] {
  return wantsContact(method) || given !== undefined ? [{ name: 'Contact', value: contact }] : [];
}

export function wantsContact(method: string): boolean {
  return method === 'INVITE' || method === 'SUBSCRIBE';
}

function fromHeader(given: string | undefined, contact: string, context: BuildContext) {
  const source = given ?? `<${parseNameAddress(contact)?.uri ?? ''}>`;
  const address = parseNameAddress(source);
  if (address === undefined || !address.uri.includes(':')) return undefined;
  const uri = address.uri === 'sip:localhost' ? localUri(context.local, 'udp') : address.uri;
  const tag = addressTag(source);
  const parameters = tag === undefined ? `;tag=${context.newTag()}` : '';
  const value = formatNameAddress({ ...address, uri, parameters: address.parameters + parameters });
  return { value, tag: addressTag(value) ?? '' };
}

/**
 * sofia-sip parses the bare URI as a header value, so the URI's parameters end up after the
 * bracket.
 */
function toFromUri(uri: string): string {
  const address = parseNameAddress(uri);
  return address === undefined ? `<${uri}>` : formatNameAddress(address);
}

/**
 * Formats a To header the way that sofia-sip does after parsing it, i.e. without brackets if
 * possible.
 */
export function unbracketedTo(value: string): string {
  const address = parseNameAddress(value);
  if (address === undefined || address.display !== '' || /[;,?]/.test(address.uri)) return value;
  return `${address.uri}${address.parameters}`;
}

/** Like sofia-sip, we start the CSeq at half the number of seconds since 1900. */
export function firstCseq(nowMs: number): number {
  const secondsSince1900 = Math.floor(nowMs / 1_000) + 2_208_988_800;
  return Math.floor(secondsSince1900 / 2) % 0x8000000;
}
