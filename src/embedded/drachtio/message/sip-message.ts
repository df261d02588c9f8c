// Parses and serializes SIP messages. The text is "binary" (latin1), i.e. there's one character per
// byte, so nothing gets lost or re-encoded, and the length of a string is its length in bytes. We
// wrote our own parser because we need one that never throws, takes microseconds, and passes on
// unknown headers unchanged. drachtio-srf's parser loses repeated lines and the order of headers,
// and the parsers in sip.js and jssip are slow and require valid grammar.

import { canonicalHeaderName, headerRank, isToken } from './sip-headers.ts';

export type SipHeader = { readonly name: string; readonly value: string };

export type SipRequest = {
  readonly kind: 'request';
  readonly method: string;
  readonly uri: string;
  readonly headers: readonly SipHeader[];
  readonly body: string;
};

export type SipResponse = {
  readonly kind: 'response';
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly SipHeader[];
  readonly body: string;
};

export type SipMessage = SipRequest | SipResponse;

export type ParsedMessage =
  | { readonly kind: 'message'; readonly message: SipMessage }
  | { readonly kind: 'rubbish'; readonly why: string };

/**
 * No carrier sends this many header lines. The limit bounds the memory that we need for a datagram.
 */
const maxHeaderLines = 256;

/**
 * Parses the text between the start line and the blank line, ignoring lines without a colon or with
 * an invalid name.
 *
 * @returns undefined if there are too many lines
 */
export function parseHeaderLines(head: string): SipHeader[] | undefined {
  const headers: SipHeader[] = [];
  let position = 0;
  while (position < head.length) {
    if (headers.length >= maxHeaderLines) return undefined;
    let end = lineEnd(head, position);
    let line = head.slice(position, end.text);
    // A line that starts with white space continues the previous line (RFC 3261 section 7.3.1).
    while (startsWithBlank(head, end.next)) {
      const folded = lineEnd(head, end.next);
      line = `${line.trimEnd()} ${head.slice(end.next, folded.text).trimStart()}`;
      end = folded;
    }
    position = end.next;
    const header = parseHeaderLine(line);
    if (header !== undefined) headers.push(header);
  }
  return headers;
}

function parseHeaderLine(line: string): SipHeader | undefined {
  const colon = line.indexOf(':');
  if (colon <= 0) return undefined;
  const name = line.slice(0, colon).trimEnd();
  if (!isToken(name)) return undefined;
  return { name: canonicalHeaderName(name), value: line.slice(colon + 1).trim() };
}

function startsWithBlank(text: string, position: number): boolean {
  const character = text.charCodeAt(position);
  return character === 0x20 || character === 0x09;
}

function lineEnd(text: string, from: number): { readonly text: number; readonly next: number } {
  const newline = text.indexOf('\n', from);
  if (newline < 0) return { text: text.length, next: text.length };
  const end = newline > from && text.charCodeAt(newline - 1) === 0x0d ? newline - 1 : newline;
  return { text: end, next: newline + 1 };
}

/**
 * Finds the end of the headers. `head` is the index of the blank line, and `body` is the index of
 * the first byte after that line. Returns undefined if there's no blank line.
 */
export function findBlankLine(
  text: string,
  from = 0,
): { readonly head: number; readonly body: number } | undefined {
  const crlf = text.indexOf('\r\n\r\n', from);
  const bare = text.indexOf('\n\n', from);
  if (crlf >= 0 && (bare < 0 || crlf < bare)) return { head: crlf + 2, body: crlf + 4 };
  return bare < 0 ? undefined : { head: bare + 1, body: bare + 2 };
}

export function parseMessage(text: string): ParsedMessage {
  const start = skipLeadingBlankLines(text);
  const blank = findBlankLine(text, start);
  const head = blank === undefined ? text.slice(start) : text.slice(start, blank.head);
  const body = blank === undefined ? '' : text.slice(blank.body);
  const first = lineEnd(head, 0);
  const startLine = head.slice(0, first.text);
  const headers = parseHeaderLines(head.slice(first.next));
  if (headers === undefined) return { kind: 'rubbish', why: 'too many header lines' };
  const message = startLine.startsWith('SIP/')
    ? parseStatusLine(startLine, headers, body)
    : parseRequestLine(startLine, headers, body);
  return message === undefined
    ? { kind: 'rubbish', why: 'bad start line' }
    : { kind: 'message', message };
}

function skipLeadingBlankLines(text: string): number {
  let position = 0;
  while (text.charCodeAt(position) === 0x0d || text.charCodeAt(position) === 0x0a) position += 1;
  return position;
}

function parseStatusLine(
  line: string,
  headers: readonly SipHeader[],
  body: string,
): SipResponse | undefined {
  if (!line.startsWith('SIP/2.0 ')) return undefined;
  const status = Number(line.slice(8, 11));
  if (!Number.isInteger(status) || status < 100 || status > 699) return undefined;
  if (line.length > 11 && line.charCodeAt(11) !== 0x20) return undefined;
  return { kind: 'response', status, reason: line.slice(12), headers, body };
}

function parseRequestLine(
  line: string,
  headers: readonly SipHeader[],
  body: string,
): SipRequest | undefined {
  const space = line.indexOf(' ');
  const last = line.lastIndexOf(' ');
  if (space <= 0 || last <= space || line.slice(last + 1) !== 'SIP/2.0') return undefined;
  const method = line.slice(0, space);
  const uri = line.slice(space + 1, last).trim();
  if (!isToken(method) || uri === '' || uri.includes(' ')) return undefined;
  return { kind: 'request', method, uri, headers, body };
}

export function headerValue(
  message: { readonly headers: readonly SipHeader[] },
  name: string,
): string | undefined {
  for (const header of message.headers) if (header.name === name) return header.value;
  return undefined;
}

export function headerValues(
  message: { readonly headers: readonly SipHeader[] },
  name: string,
): string[] {
  const values: string[] = [];
  for (const header of message.headers) if (header.name === name) values.push(header.value);
  return values;
}

/**
 * Returns a copy in which the first header with that name is replaced. If there isn't one, the copy
 * contains an additional header at the end.
 */
export function withHeader<Message extends SipMessage>(
  message: Message,
  name: string,
  value: string,
): Message {
  const headers = [...message.headers];
  const index = headers.findIndex((header) => header.name === name);
  if (index < 0) headers.push({ name, value });
  else headers[index] = { name, value };
  return { ...message, headers };
}

/**
 * Sorts the headers of an outgoing message in drachtio-server's order. The sort is stable, so
 * headers with the same name remain in order.
 */
export function sortedHeaders(headers: readonly SipHeader[]): SipHeader[] {
  return headers
    .map((header, index) => ({
      header,
      rank: headerRank(header.name) * maxHeaderLines * 4 + index,
    }))
    .sort((left, right) => left.rank - right.rank)
    .map((entry) => entry.header);
}

export function startLine(message: SipMessage): string {
  return message.kind === 'request'
    ? `${message.method} ${message.uri} SIP/2.0`
    : `SIP/2.0 ${message.status} ${message.reason}`;
}

export function serializeMessage(message: SipMessage): string {
  let text = `${startLine(message)}\r\n`;
  for (const header of message.headers) text += `${header.name}: ${header.value}\r\n`;
  return `${text}\r\n${message.body}`;
}
