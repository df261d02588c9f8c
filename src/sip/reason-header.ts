// Parses Reason headers (RFC 3326), and the analytics text that some of them contain. The values
// come from the network, so parsing never throws, and every length and number is bounded.
//
// A US provider that blocks a call because of its analytics answers `603 Network Blocked` with a
// Reason header (ATIS-1000099, "603+", which the FCC requires since March 2026):
//
//   Reason: SIP;cause=603;text="v=analytics1;url=https://a.example/redress;id=7";location=RLN
//
// The protocol may also be `Q.850;cause=21`. The text has `v`, at least one of `url`, `tel` and
// `email`, and optionally `id`. We know this form from the standard's public abstract and from what
// Asterisk, FreeSWITCH, Twilio and Telnyx send and accept, not from the standard's own text. So the
// parser is tolerant: parts may be missing, in any order and case, and outside of the text.

import type { Block, Cause } from '../calls/life/end-facts.ts';

/** Longer headers are cut. A control frame can be 64 KiB, but a real Reason is below 500 bytes. */
const maxHeaderLength = 4_096;
/** Bounds the work for hostile headers. Real ones have one or two values with four parameters. */
const maxValues = 10;
const maxParameters = 20;
export const maxTextLength = 200;
const maxRawLength = 1_000;
const maxUrlLength = 500;
/** ATIS-1000099 allows 64 characters. */
const maxIdLength = 64;
/** RFC 5321, section 4.5.3.1.3. */
const maxEmailLength = 254;

type ReasonValue = {
  readonly protocol: string;
  /** By lower-case name. Quotes and escapes are removed. */
  readonly parameters: ReadonlyMap<string, string>;
};

/** Returns the cause that a Reason header states, or undefined if it states none. */
export function causeOf(header: string | undefined): Cause | undefined {
  const values = reasonValues(header);
  const q850 = numberIn(values, /^q\.?850$/i, 0, 127);
  const sip = numberIn(values, /^sip$/i, 100, 699);
  const texts = values.map(({ parameters }) => parameters.get('text') ?? '');
  // The analytics text is for programs. `blockOf` reads it.
  const text = texts.map(cleaned).find((one) => one !== '' && !isAnalytics(avpsOf(one)));
  if (q850 === undefined && sip === undefined && text === undefined) return undefined;
  return {
    ...(q850 === undefined ? {} : { q850 }),
    ...(sip === undefined ? {} : { sip }),
    ...(text === undefined ? {} : { text: bounded(text, maxTextLength) }),
  };
}

/** Returns what a Reason header says about a block by analytics, or undefined if it doesn't. */
export function analyticsBlockOf(header: string | undefined): Block | undefined {
  for (const { parameters } of reasonValues(header)) {
    // Some systems write the text's parts as parameters of their own.
    const parts = new Map([...parameters, ...avpsOf(parameters.get('text') ?? '')]);
    if (isAnalytics(parts)) return toBlock(parts, header ?? '');
  }
  return undefined;
}

/** Returns the header or status line as it's reported: on one line and bounded. */
export function rawText(text: string): string {
  return bounded(cleaned(text.slice(0, maxHeaderLength)), maxRawLength);
}

function toBlock(parts: ReadonlyMap<string, string>, header: string): Block {
  const url = webUrl(parts.get('url'));
  const tel = /^[+\d][\d().\s-]{1,31}$/.exec((parts.get('tel') ?? '').replace(/^tel:/i, ''))?.[0];
  const email = emailAddress(parts.get('email'));
  const by = url === undefined ? email?.slice(email.lastIndexOf('@') + 1) : hostOfUrl(url);
  const location = /^[A-Z][A-Z\d-]{0,31}$/i.exec(parts.get('location') ?? '')?.[0];
  const id = bounded(cleaned(parts.get('id') ?? ''), maxIdLength);
  return {
    ...(by === undefined ? {} : { by }),
    ...(url === undefined ? {} : { url }),
    ...(tel === undefined ? {} : { tel: tel.trim() }),
    ...(email === undefined ? {} : { email }),
    ...(id === '' ? {} : { id }),
    ...(location === undefined ? {} : { location: location.toUpperCase() }),
    raw: rawText(header),
  };
}

/** Returns a web address that is safe to show as a link, or undefined. */
export function webUrl(text: string | undefined): string | undefined {
  if (text === undefined || text.length > maxUrlLength) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined;
}

export function hostOfUrl(url: string): string {
  return new URL(url).hostname;
}

function emailAddress(text: string | undefined): string | undefined {
  const address = text?.replace(/^mailto:/i, '');
  if (address === undefined || address.length > maxEmailLength) return undefined;
  return /^[^\s@<>"]+@[^\s@<>"]+$/.test(address) ? address : undefined;
}

function isAnalytics(parts: ReadonlyMap<string, string>): boolean {
  return /^analytics\d*$/i.test(parts.get('v') ?? '');
}

/** Reads the `name=value` pairs of an analytics text. The first one of each name counts. */
function avpsOf(text: string): ReadonlyMap<string, string> {
  const parts = new Map<string, string>();
  for (const part of text.split(';', maxParameters)) {
    const equals = part.indexOf('=');
    const name = part.slice(0, Math.max(0, equals)).trim().toLowerCase();
    if (name !== '' && !parts.has(name)) parts.set(name, unquoted(part.slice(equals + 1)));
  }
  return parts;
}

function numberIn(
  values: readonly ReasonValue[],
  protocol: RegExp,
  min: number,
  max: number,
): number | undefined {
  for (const { protocol: name, parameters } of values) {
    const digits = protocol.test(name) ? /^\d{1,3}$/.exec(parameters.get('cause') ?? '') : null;
    const number = Number(digits?.[0] ?? Number.NaN);
    if (number >= min && number <= max) return number;
  }
  return undefined;
}

function reasonValues(header: string | undefined): readonly ReasonValue[] {
  const text = (header ?? '').slice(0, maxHeaderLength);
  return splitOutsideQuotes(text, ',', maxValues).map((value) => {
    const [protocol = '', ...rest] = splitOutsideQuotes(value, ';', maxParameters);
    const parameters = new Map<string, string>();
    for (const parameter of rest) {
      const equals = parameter.indexOf('=');
      const name = (equals < 0 ? parameter : parameter.slice(0, equals)).trim().toLowerCase();
      const own = equals < 0 ? '' : unquoted(parameter.slice(equals + 1));
      if (name !== '' && !parameters.has(name)) parameters.set(name, own);
    }
    return { protocol: protocol.trim(), parameters };
  });
}

/**
 * Splits a header in a single pass, because the far end controls its length.
 *
 * @param brackets set if the values are name-addrs, whose URIs may contain the separator
 */
export function splitOutsideQuotes(
  text: string,
  separator: string,
  max: number,
  { brackets = false } = {},
): string[] {
  const parts: string[] = [];
  let start = 0;
  for (const { 0: token, index } of text.matchAll(brackets ? bracketedTokens : quotedTokens)) {
    if (parts.length === max - 1) break;
    if (token !== separator) continue;
    parts.push(text.slice(start, index));
    start = index + 1;
  }
  return [...parts, text.slice(start)];
}

/** A quoted string, which may be unclosed, or a single character. */
const quotedTokens = /"(?:[^"\\]|\\.)*["\\]?|./gs;
const bracketedTokens = /"(?:[^"\\]|\\.)*["\\]?|<[^>]*>?|./gs;

/** Removes the quotes and escapes of a quoted string (RFC 3261, section 25.1). */
export function unquoted(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith('"')) return trimmed;
  const end = trimmed.length > 1 && trimmed.endsWith('"') ? -1 : trimmed.length;
  return trimmed.slice(1, end).replace(/\\(.)/gs, '$1').trim();
}

/** Replaces control characters and line breaks, which a folded header may contain. */
export function cleaned(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
}

/** Cuts a text without leaving half a surrogate pair. */
export function bounded(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '');
}
