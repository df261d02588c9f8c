// Small parsers for SIP header values (RFC 3261, section 25). Because the input comes from the
// network, they never throw, but return undefined for values that they can't parse.

import type { SipMessage } from './engine/srf-types.ts';

/** Returns the URI of a name-addr or addr-spec, as in From, To, Contact and Route. */
export function uriOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const open = indexOutsideQuotes(header, '<');
  if (open >= 0) {
    const close = header.indexOf('>', open);
    return close > open + 1 ? header.slice(open + 1, close).trim() : undefined;
  }
  // Without angle brackets, parameters belong to the header and not to the URI (section 20.10).
  const uri = header.split(';', 1)[0]?.trim();
  return uri === undefined || uri === '' ? undefined : uri;
}

/** Returns the host of a SIP URI exactly as written, without user, port and parameters. */
export function hostOf(uri: string | undefined): string | undefined {
  return /^sips?:(?:[^@]*@)?(\[[^\]]+\]|[^:;?@\s]+)/i.exec(uri ?? '')?.[1];
}

/**
 * Returns the URI of a Contact that can become the target of a dialog's requests. RFC 3261, section
 * 8.1.1.8, requires a single SIP or SIPS URI there, so this rejects `tel:` URIs, among others. If
 * there are several URIs, this returns the first one that can, as the embedded engine does.
 *
 * @returns undefined if the header is missing, can't be parsed, or contains only other URIs
 */
export function contactTarget(header: string | undefined): string | undefined {
  return [uriOf(header) ?? '', ...addressList(header)].find(isSipUri);
}

/** Whether we can send to this URI, i.e. whether it's a SIP or SIPS URI with a host. */
export function isSipUri(uri: string): boolean {
  const [, port] = sipUri.exec(uri) ?? [undefined, 'none'];
  return port === undefined || (Number(port) >= 1 && Number(port) <= 65_535);
}

/**
 * A SIP URI with a host that we can send to. Lenient about the user, the parameters and underscores
 * in host names, because the engine only needs the host and the port.
 */
const sipUri =
  /^sips?:(?:[^@\s]*@)?(?:\[[\da-f:.]+\]|[\da-z](?:[\w.-]*[\da-z.])?)(?::(\d{1,5}))?(?:[;?]\S*)?$/i;

/** Returns the tag parameter from a From or To header. */
export function tagOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const open = indexOutsideQuotes(header, '<');
  const parameters = open >= 0 ? header.slice(Math.max(header.indexOf('>', open), open)) : header;
  return /;\s*tag\s*=\s*([^;\s,>]+)/i.exec(parameters)?.[1];
}

// Max-Forwards limits a request to this many proxies, so there can't be more Record-Route entries
// than that.
const maxRoutes = 70;

/**
 * Returns the URIs from a comma-separated list of name-addrs, e.g. Record-Route. Makes a single
 * pass, because the far end controls the length of the list.
 */
export function addressList(header: string | undefined): readonly string[] {
  const uris: string[] = [];
  let rest = header ?? '';
  while (uris.length < maxRoutes) {
    const open = indexOutsideQuotes(rest, '<');
    const close = open < 0 ? -1 : rest.indexOf('>', open);
    if (close < 0) break;
    const uri = rest.slice(open + 1, close).trim();
    if (uri !== '') uris.push(uri);
    rest = rest.slice(close + 1);
  }
  return uris;
}

export function cseqNumber(header: string | undefined): number | undefined {
  const digits = /^\s*(\d{1,10})\s/.exec(header ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** A control frame may contain a header of many kilobytes. A real Reason is below 500 bytes. */
const maxReasonHeaderLength = 4_096;

/**
 * Returns the text from a Reason header (RFC 3326), e.g. `ACK timeout`. Without a text, returns the
 * protocol and the cause.
 */
export function reasonText(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const header = value.slice(0, maxReasonHeaderLength);
  // If the header is cut, the text has no closing quotation mark.
  const text = /text\s*=\s*"((?:[^"\\]|\\.)+)/i.exec(header)?.[1];
  if (text !== undefined) return text;
  const cause = /cause\s*=\s*(\d{1,4})/i.exec(header)?.[1];
  const protocol = /^\s*([\w.]{1,20})/.exec(header)?.[1];
  return cause !== undefined && protocol !== undefined ? `${protocol} ${cause}` : undefined;
}

export function sdpOf(message: SipMessage): string | undefined {
  const type = message.get('Content-Type')?.toLowerCase() ?? '';
  if (type.startsWith('multipart/')) {
    const part = message.payload?.find((item) =>
      item.type?.toLowerCase().startsWith('application/sdp'),
    );
    return nonEmpty(part?.content);
  }
  const isSdp = type.startsWith('application/sdp') || type === '';
  return isSdp ? nonEmpty(message.body) : undefined;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text;
}

function indexOutsideQuotes(text: string, wanted: string): number {
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (quoted && character === '\\') index += 1;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === wanted) return index;
  }
  return -1;
}

/**
 * Parses the status line in a `message/sipfrag` body (RFC 3420).
 * @returns undefined if the body doesn't start with a status line
 */
export function statusOfFragment(
  body: string | undefined,
): { readonly code: number; readonly reason: string } | undefined {
  const [, code, reason = ''] =
    /^\s*SIP\/2\.0[ \t]+([1-6]\d\d)(?:[ \t]+([^\r\n]{0,200}))?/i.exec(body ?? '') ?? [];
  return code === undefined ? undefined : { code: Number(code), reason: reason.trim() };
}
