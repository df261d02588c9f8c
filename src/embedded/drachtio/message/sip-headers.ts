// Header names in sofia-sip's spelling, their compact forms (RFC 3261 section 20 and extensions),
// and the order of headers in an outgoing message. We use the same order as drachtio-server, which
// writes unknown headers near the end.

export type HeaderKind = { readonly name: string; readonly rank: number };

/** The order in sofia-sip's `sip_t`, which applications have come to expect. */
const orderedNames = [
  'Via',
  'Route',
  'Record-Route',
  'Max-Forwards',
  'Proxy-Require',
  'From',
  'To',
  'Call-ID',
  'CSeq',
  'Contact',
  'RSeq',
  'RAck',
  'Request-Disposition',
  'Accept-Contact',
  'Reject-Contact',
  'Expires',
  'Date',
  'Retry-After',
  'Timestamp',
  'Min-Expires',
  'Subject',
  'Priority',
  'Call-Info',
  'Organization',
  'Server',
  'User-Agent',
  'In-Reply-To',
  'Accept',
  'Accept-Encoding',
  'Accept-Language',
  'Allow',
  'Require',
  'Supported',
  'Unsupported',
  'Event',
  'Allow-Events',
  'Subscription-State',
  'Proxy-Authenticate',
  'Proxy-Authentication-Info',
  'Proxy-Authorization',
  'Authorization',
  'WWW-Authenticate',
  'Authentication-Info',
  'Error-Info',
  'Warning',
  'Refer-To',
  'Referred-By',
  'Replaces',
  'Session-Expires',
  'Min-SE',
  'Path',
  'Service-Route',
  'Reason',
  'Security-Client',
  'Security-Server',
  'Security-Verify',
  'Privacy',
  'SIP-ETag',
  'SIP-If-Match',
  'MIME-Version',
  'Content-Type',
  'Content-Encoding',
  'Content-Language',
  'Content-Disposition',
  'Content-Length',
] as const;

/**
 * Headers that sofia-sip keeps in an extension table, which it writes after the unknown headers.
 */
const trailingNames = [
  'Refer-Sub',
  'Alert-Info',
  'Reply-To',
  'P-Asserted-Identity',
  'P-Preferred-Identity',
  'Remote-Party-ID',
] as const;

const unknownRank = orderedNames.length;

const compactForms: Readonly<Record<string, string>> = {
  a: 'Accept-Contact',
  b: 'Referred-By',
  c: 'Content-Type',
  d: 'Request-Disposition',
  e: 'Content-Encoding',
  f: 'From',
  i: 'Call-ID',
  j: 'Reject-Contact',
  k: 'Supported',
  l: 'Content-Length',
  m: 'Contact',
  o: 'Event',
  r: 'Refer-To',
  s: 'Subject',
  t: 'To',
  u: 'Allow-Events',
  v: 'Via',
  x: 'Session-Expires',
};

function buildKinds(): ReadonlyMap<string, HeaderKind> {
  const kinds = new Map<string, HeaderKind>();
  for (const [rank, name] of orderedNames.entries()) kinds.set(name.toLowerCase(), { name, rank });
  for (const [index, name] of trailingNames.entries()) {
    kinds.set(name.toLowerCase(), { name, rank: unknownRank + 1 + index });
  }
  for (const [compact, name] of Object.entries(compactForms)) {
    const kind = kinds.get(name.toLowerCase());
    if (kind !== undefined) kinds.set(compact, kind);
  }
  return kinds;
}

const kinds = buildKinds();

/**
 * Most names arrive in the usual spelling. If the name is in this set, we don't need to call
 * `toLowerCase`.
 */
const exactNames: ReadonlySet<string> = new Set([...orderedNames, ...trailingNames]);

export function canonicalHeaderName(name: string): string {
  if (exactNames.has(name)) return name;
  return kinds.get(name.toLowerCase())?.name ?? name;
}

export function headerRank(canonicalName: string): number {
  return kinds.get(canonicalName.toLowerCase())?.rank ?? unknownRank;
}

export function isKnownHeader(name: string): boolean {
  return kinds.has(name.toLowerCase());
}

/** `x-lab-id` becomes `X-Lab-Id`, like any header that drachtio-server doesn't know. */
export function capitalizedHeaderName(name: string): string {
  return name
    .split('-')
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('-');
}

/**
 * Returns true if the text is a `token` (RFC 3261 section 25.1). We compare character codes because
 * a regular expression would be slower on hostile input.
 */
export function isToken(text: string): boolean {
  if (text.length === 0) return false;
  for (let index = 0; index < text.length; index += 1) {
    if (!isTokenCode(text.charCodeAt(index))) return false;
  }
  return true;
}

function isTokenCode(code: number): boolean {
  if (code >= 0x61 && code <= 0x7a) return true;
  if (code >= 0x41 && code <= 0x5a) return true;
  if (code >= 0x30 && code <= 0x39) return true;
  return tokenPunctuation.has(code);
}

const tokenPunctuation: ReadonlySet<number> = new Set(Buffer.from("-.!%*_+`'~", 'latin1'));
