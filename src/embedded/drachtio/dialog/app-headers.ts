// Turns an application's sketch of a message into proper headers. For this we use drachtio-server's
// spelling of header names, put addresses in brackets, replace `localhost`, and drop headers that
// only the engine is allowed to set.

import type { SipText } from '../control/control-messages.ts';
import { type LocalIdentity, replaceLocalhost } from '../message/local-identity.ts';
import { formatNameAddress, parseNameAddress, splitOutsideQuotes } from '../message/sip-grammar.ts';
import { capitalizedHeaderName, isKnownHeader } from '../message/sip-headers.ts';
import type { SipHeader } from '../message/sip-message.ts';

/** Like drachtio-server, we drop these headers without reporting an error. */
const engineOnly: ReadonlySet<string> = new Set([
  'Via',
  'Route',
  'Record-Route',
  'RSeq',
  'Content-Length',
]);

const withLocalhost: ReadonlySet<string> = new Set([
  'From',
  'To',
  'Contact',
  'P-Asserted-Identity',
]);
const credentials: ReadonlySet<string> = new Set(['Authorization', 'Proxy-Authorization']);

export type AppHeaders = {
  /** All headers except those in `excluded`, in the application's order. */
  readonly headers: SipHeader[];
  get(name: string): string | undefined;
};

export function appHeaders(
  sketch: SipText,
  local: LocalIdentity,
  excluded: ReadonlySet<string>,
): AppHeaders {
  const all = new Map<string, string>();
  const headers: SipHeader[] = [];
  for (const given of sketch.headers) {
    const name = isKnownHeader(given.name) ? given.name : capitalizedHeaderName(given.name);
    if (engineOnly.has(name)) continue;
    const value = normalizeValue(name, given.value, local);
    if (!all.has(name)) all.set(name, value);
    if (!excluded.has(name)) headers.push({ name, value });
  }
  return { headers, get: (name) => all.get(name) };
}

function normalizeValue(name: string, given: string, local: LocalIdentity): string {
  const value = withLocalhost.has(name) ? replaceLocalhost(given, local) : given;
  if (name === 'From' || name === 'To' || name === 'Contact') return bracketed(value);
  if (credentials.has(name)) {
    return splitOutsideQuotes(value, ',')
      .map((part) => part.trim())
      .join(', ');
  }
  return value;
}

function bracketed(value: string): string {
  if (value === '*' || value.startsWith('<') || splitOutsideQuotes(value, ',').length > 1) {
    return value;
  }
  const address = parseNameAddress(value);
  return address === undefined ? value : formatNameAddress(address);
}

/**
 * Returns the application's Content-Type, or `application/sdp` if the body is SDP. Like
 * drachtio-server, we don't recognise any other type of content.
 *
 * @returns undefined if there's no body, or if we don't know its type
 */
export function contentTypeOf(given: string | undefined, body: string): string | undefined {
  if (given !== undefined) return given;
  return body.startsWith('v=0') ? 'application/sdp' : undefined;
}

/**
 * Headers that we don't copy from the application's message into a CANCEL, or into a request within
 * a dialog.
 */
export const decidedHeaders: ReadonlySet<string> = new Set([
  'From',
  'To',
  'Call-ID',
  'CSeq',
  'Contact',
  'Content-Type',
  'Max-Forwards',
]);
