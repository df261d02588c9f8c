// Parses the header values that the engine needs to understand, which are URIs, name-addrs, Via,
// CSeq and parameters. All parsers return undefined for invalid input, and run in linear time
// without backtracking.

export type SipUri = {
  readonly scheme: 'sip' | 'sips';
  readonly user: string | undefined;
  readonly host: string;
  readonly port: number | undefined;
  /** Names are in lower case. If a parameter doesn't have a value, it maps to ''. */
  readonly parameters: ReadonlyMap<string, string>;
};

const noParameters: ReadonlyMap<string, string> = new Map();

export function parseSipUri(text: string): SipUri | undefined {
  const colon = text.indexOf(':');
  const scheme = text.slice(0, colon).toLowerCase();
  if (scheme !== 'sip' && scheme !== 'sips') return undefined;
  const question = text.indexOf('?', colon);
  const rest = text.slice(colon + 1, question < 0 ? text.length : question);
  // The user part may contain ';' (RFC 3261 section 19.1.1), so find the '@' first.
  const at = rest.lastIndexOf('@');
  const hostPart = rest.slice(at + 1);
  const semicolon = hostPart.indexOf(';');
  const address = parseHostPort(semicolon < 0 ? hostPart : hostPart.slice(0, semicolon));
  if (address === undefined) return undefined;
  const user = at < 0 ? undefined : rest.slice(0, at);
  const parameters = semicolon < 0 ? noParameters : parseParameters(hostPart.slice(semicolon));
  return { scheme, user, ...address, parameters };
}

export function parseHostPort(
  text: string,
): { readonly host: string; readonly port: number | undefined } | undefined {
  const trimmed = text.trim();
  if (trimmed.startsWith('[')) return parseBracketedHostPort(trimmed);
  const colon = trimmed.indexOf(':');
  const host = colon < 0 ? trimmed : trimmed.slice(0, colon);
  if (!isHost(host)) return undefined;
  return withPort(host, colon < 0 ? undefined : trimmed.slice(colon + 1));
}

function parseBracketedHostPort(text: string) {
  const close = text.indexOf(']');
  if (close < 0) return undefined;
  const host = text.slice(1, close);
  if (!isIpv6Text(host)) return undefined;
  const rest = text.slice(close + 1);
  if (rest === '') return { host, port: undefined };
  return rest.startsWith(':') ? withPort(host, rest.slice(1)) : undefined;
}

function withPort(host: string, portText: string | undefined) {
  if (portText === undefined) return { host, port: undefined };
  const port = parseDecimal(portText, 5);
  return port === undefined || port === 0 || port > 65_535 ? undefined : { host, port };
}

function isHost(text: string): boolean {
  if (text === '' || text.length > 255) return false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    const fine =
      (code >= 0x61 && code <= 0x7a) ||
      (code >= 0x41 && code <= 0x5a) ||
      (code >= 0x30 && code <= 0x39) ||
      code === 0x2d ||
      code === 0x2e ||
      code === 0x5f;
    if (!fine) return false;
  }
  return true;
}

function isIpv6Text(text: string): boolean {
  return text.length > 1 && text.length <= 45 && /^[0-9a-fA-F:.]+$/.test(text);
}

/** Accepts up to `maxDigits` digits, and nothing else. */
export function parseDecimal(text: string, maxDigits: number): number | undefined {
  if (text.length === 0 || text.length > maxDigits) return undefined;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x30 || code > 0x39) return undefined;
  }
  return Number(text);
}

/** Parses `;a=b;c` into a map. A quoted value keeps its quotes. */
export function parseParameters(text: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const part of splitOutsideQuotes(text, ';')) {
    const equals = part.indexOf('=');
    const name = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
    if (name !== '') parameters.set(name, equals < 0 ? '' : part.slice(equals + 1).trim());
  }
  return parameters;
}

/** Splits at each `separator` that's outside quotes and angle brackets. */
export function splitOutsideQuotes(text: string, separator: ',' | ';'): string[] {
  const parts: string[] = [];
  let start = 0;
  for (;;) {
    const end = indexOutsideQuotes(text, separator.charCodeAt(0), start);
    if (end < 0) {
      parts.push(text.slice(start));
      return parts;
    }
    parts.push(text.slice(start, end));
    start = end + 1;
  }
}

/**
 * Finds the first `wanted` that's outside quotes and angle brackets. `wanted` may itself be the
 * opening bracket.
 */
function indexOutsideQuotes(text: string, wanted: number, from: number): number {
  let index = from;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (code === wanted) return index;
    if (code === 0x22) index = closingQuote(text, index);
    else if (code === 0x3c) index = skipTo(text, 0x3e, index);
    index += 1;
  }
  return -1;
}

function closingQuote(text: string, open: number): number {
  for (let index = open + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x5c) index += 1;
    else if (code === 0x22) return index;
  }
  return text.length;
}

function skipTo(text: string, wanted: number, from: number): number {
  for (let index = from; index < text.length; index += 1) {
    if (text.charCodeAt(index) === wanted) return index;
  }
  return text.length;
}

export type NameAddress = {
  /** As received, including quotes. */
  readonly display: string;
  readonly uri: string;
  /** Everything after the address, starting with the ';'. May be empty. */
  readonly parameters: string;
};

/** Parses a From, To, Contact or Route value: `"Alice" <sip:a@b>;tag=1` or `sip:a@b;tag=1`. */
export function parseNameAddress(value: string): NameAddress | undefined {
  const open = indexOutsideQuotes(value, 0x3c, 0);
  if (open >= 0) {
    const close = value.indexOf('>', open);
    if (close < 0) return undefined;
    return {
      display: value.slice(0, open).trim(),
      uri: value.slice(open + 1, close).trim(),
      parameters: value.slice(close + 1).trim(),
    };
  }
  // RFC 3261 section 20 says that without brackets, everything after the first ';' belongs to the
  // header.
  const semicolon = value.indexOf(';');
  const uri = (semicolon < 0 ? value : value.slice(0, semicolon)).trim();
  if (uri === '' || uri.includes(' ') || uri.includes('"')) return undefined;
  return { display: '', uri, parameters: semicolon < 0 ? '' : value.slice(semicolon).trim() };
}

export function formatNameAddress(address: NameAddress): string {
  const display = address.display === '' ? '' : `${address.display} `;
  return `${display}<${address.uri}>${address.parameters}`;
}

export function addressTag(value: string): string | undefined {
  const address = parseNameAddress(value);
  if (address === undefined || !address.parameters.includes('tag')) return undefined;
  const tag = parseParameters(address.parameters).get('tag');
  return tag === '' ? undefined : tag;
}

export type Via = {
  readonly transport: string;
  readonly host: string;
  readonly port: number | undefined;
  readonly parameters: ReadonlyMap<string, string>;
};

/** Parses the first entry of a Via value. */
export function parseVia(value: string): Via | undefined {
  const first = splitOutsideQuotes(value, ',')[0] ?? '';
  const semicolon = first.indexOf(';');
  const head = (semicolon < 0 ? first : first.slice(0, semicolon)).trim();
  // There may be white space around the slashes, so we look for the transport after the second
  // slash.
  const slash = head.indexOf('/', head.indexOf('/') + 1);
  if (slash < 0) return undefined;
  const sent = head.slice(slash + 1).trimStart();
  const space = sent.search(/[ \t]/);
  const transport = sent.slice(0, Math.max(0, space));
  const address = parseHostPort(sent.slice(space));
  if (transport === '' || address === undefined) return undefined;
  const parameters = semicolon < 0 ? noParameters : parseParameters(first.slice(semicolon));
  return { transport: transport.toUpperCase(), ...address, parameters };
}

/** RFC 3261 section 8.1.1.5 says that a CSeq number is below 2^31. */
const maxCseq = 2_147_483_647;

export function parseCseq(
  value: string,
): { readonly number: number; readonly method: string } | undefined {
  const space = value.search(/[ \t]/);
  if (space < 0) return undefined;
  const number = parseDecimal(value.slice(0, space), 10);
  const method = value.slice(space + 1).trim();
  if (number === undefined || number > maxCseq || method === '') return undefined;
  return { number, method };
}

export function bracketedHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

export function formatHostPort(host: string, port: number): string {
  return `${bracketedHost(host)}:${port}`;
}
