// Parses a call's target. The parser is strict on purpose: the text ends up in SIP headers, so it
// rejects anything that could end a URI, a header or a line. It also rejects numbers of which only
// a part could be dialled, and numbers that can't belong to any phone.

import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';
import { whyImpossible } from '../../lib/phone-numbers.ts';
import type { TargetResult } from './dial-target.ts';
import { type NumberReading, readBareNumber } from './number-reading.ts';

/**
 * RFC 3261 doesn't set a maximum length. Carriers don't accept this much, and the engine's own
 * limit is far higher.
 */
const maxUserLength = 128;
/** E.164 allows 15 digits. */
const globalDigits = /^[0-9]{3,15}$/;
/**
 * Longer than E.164 allows, because a number without `+` may start with a dialling prefix such as
 * `00` or `011`.
 */
const dialledDigits = /^[0-9]{3,20}$/;

/** RFC 3966 allows letters too, which no phone can dial. */
const localDigits = /^[0-9*#]{1,20}$/;
/** Longer than any PBX's extension. libphonenumber reads at most 20 digits, too. */
const extensionDigits = /^[0-9]{1,20}$/;
/** Keeps the number within the length of a user part. */
const maxContextLength = 64;

/**
 * `user` per RFC 3261, section 25.1: unreserved, user-unreserved and escapes. It can't contain `@`,
 * `:`, `<`, quotes, spaces or control characters.
 */
const userCharacters = /^(?:[A-Za-z0-9\-_.!~*'()&=+$,;?/]|%[0-9A-Fa-f]{2})+$/;
/** Escaped control characters. They're legal, but decode to characters such as a line end. */
const escapedControl = /%(?:[01][0-9A-Fa-f]|7[Ff])/;

export function isSipUser(text: string): boolean {
  return text.length <= maxUserLength && userCharacters.test(text) && !escapedControl.test(text);
}

/**
 * Reads a target.
 *
 * @param reading how to read a number without `+`. By default, the number must be valid with a `+`
 * in front
 */
export function parseTarget(text: string, reading: NumberReading = {}): TargetResult {
  switch (schemeOf(text)) {
    case 'tel':
      return parseTel(text.slice(4), reading);
    case 'sip':
      return parseSip(text.slice(4));
    case 'sips':
      return reject('sips: is not supported; use sip: through a trunk with TLS');
    default:
      return reject('must be a tel: or sip: URI, e.g. tel:+12025550110');
  }
}

/** Schema for a request field that contains a target. Its output is the parsed target. */
export const targetMember = z
  .string()
  .max(512)
  .transform((text, context) => {
    const result = parseTarget(text);
    if (result.ok) return result.target;
    context.addIssue({ code: 'custom', message: result.message });
    return z.NEVER;
  });

/**
 * Whether this is a `tel:` URI without `+`, in which case settings decide which number is dialled.
 */
export function isBareNumber(text: string): boolean {
  if (schemeOf(text) !== 'tel') return false;
  const { number, parameters } = splitParameters(text.slice(4));
  const isLocal = parameters.some(({ name }) => name === 'phone-context');
  return !isLocal && dialledDigits.test(digitsOf(number));
}

function schemeOf(text: string): string {
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1]?.toLowerCase() ?? '';
}

/** Removes visual separators (RFC 3966, section 3). */
function digitsOf(number: string): string {
  return number.replaceAll(/[-.()]/g, '');
}

type Parameter = { readonly name: string; readonly value: string };

function splitParameters(text: string): {
  readonly number: string;
  readonly parameters: readonly Parameter[];
} {
  const [number = '', ...rest] = text.split(';');
  const parameters = rest.map((parameter) => {
    const [name = '', ...value] = parameter.split('=');
    return { name: name.toLowerCase(), value: value.join('=') };
  });
  return { number, parameters };
}

/**
 * Reads a number with its parameters, which select the phone: if we dropped one, a different phone
 * would ring.
 */
function parseTel(text: string, reading: NumberReading): TargetResult {
  const { number, parameters } = splitParameters(text);
  const names = parameters.map(({ name }) => name);
  const unknown = names.find((name) => name !== 'ext' && name !== 'phone-context');
  if (unknown !== undefined) {
    return reject(`the tel: parameter ${unknown} is not supported; only ext and phone-context are`);
  }
  if (new Set(names).size < names.length) return reject('a tel: parameter is given twice');
  const parameter = (wanted: string) => parameters.find(({ name }) => name === wanted)?.value;
  const extension = readExtension(parameter('ext'));
  if (!extension.ok) return extension;
  const context = parameter('phone-context');
  const result = context === undefined ? parseGlobal(number, reading) : parseLocal(number, context);
  return result.ok ? { ok: true, target: { ...result.target, ...extension.member } } : result;
}

type Extension =
  | { readonly ok: true; readonly member: { readonly ext?: string } }
  | { readonly ok: false; readonly message: string };

function readExtension(text: string | undefined): Extension {
  if (text === undefined) return { ok: true, member: {} };
  const ext = digitsOf(text);
  return extensionDigits.test(ext)
    ? { ok: true, member: { ext } }
    : { ok: false, message: 'ext must be 1 to 20 digits, e.g. tel:+12025550110;ext=123' };
}

/**
 * Reads a number that is only valid within its context. We don't complete it, even if the context
 * is the beginning of global numbers: `911;phone-context=+1` is not +1911 (RFC 3966, section
 * 5.1.5).
 */
function parseLocal(number: string, context: string): TargetResult {
  if (number.startsWith('+')) {
    return reject('phone-context belongs to a number without +, e.g. tel:7042;phone-context=+1202');
  }
  const digits = digitsOf(number);
  if (!localDigits.test(digits)) {
    return reject('must have 1 to 20 digits (or * and #) before ;phone-context');
  }
  const phoneContext = readContext(context);
  return phoneContext === undefined
    ? reject(
        `phone-context must be a domain of at most ${maxContextLength} characters, or + and 1 to 15 digits`,
      )
    : { ok: true, target: { kind: 'local', digits, phoneContext } };
}

function readContext(text: string): string | undefined {
  if (text.startsWith('+')) {
    const digits = digitsOf(text.slice(1));
    return /^[0-9]{1,15}$/.test(digits) ? `+${digits}` : undefined;
  }
  const domain = text.toLowerCase();
  const isDomain = domain.length <= maxContextLength && isHost(domain) && !domain.startsWith('[');
  return isDomain ? domain : undefined;
}

function parseGlobal(number: string, reading: NumberReading): TargetResult {
  // RFC 3966 doesn't allow spaces, and URL decoders don't agree on how to treat them.
  if (/\s/.test(number)) return reject('must not contain spaces; write e.g. tel:+1-202-555-0110');
  const digits = digitsOf(number.replace(/^\+/, ''));
  const isGlobal = number.startsWith('+');
  if (!(isGlobal ? globalDigits : dialledDigits).test(digits)) {
    return reject(
      'must be a global number of 3 to 15 digits with its country code, e.g. tel:+15551234567',
    );
  }
  if (!isGlobal) return readBareNumber(digits, reading);
  const problem = whyImpossible(digits);
  return problem === undefined
    ? { ok: true, target: { kind: 'tel', number: digits } }
    : reject(problem);
}

function parseSip(rest: string): TargetResult {
  const at = rest.lastIndexOf('@');
  if (at < 1) return reject('must have a user, e.g. sip:user@host');
  const user = rest.slice(0, at);
  if (!isSipUser(user)) {
    return reject('the user part of a sip: URI contains unescaped characters or is too long');
  }
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::([0-9]{1,5}))?$/.exec(rest.slice(at + 1));
  const authority = match?.[1]?.toLowerCase() ?? '';
  if (!isHost(authority)) {
    return reject('must be sip:user@host or sip:user@host:port, without parameters or headers');
  }
  // We store an IPv6 address without its brackets, which are only part of the URI syntax.
  const host = authority.replace(/^\[|\]$/g, '');
  if (match?.[2] === undefined) return { ok: true, target: { kind: 'sip', user, host } };
  const port = Number(match[2]);
  if (port < 1 || port > 65_535) return reject('the port must be 1 to 65535');
  return { ok: true, target: { kind: 'sip', user, host, port } };
}

/**
 * Whether the text is a host. An IPv6 address needs brackets (RFC 3261 `IPv6reference`) and can't
 * have a zone.
 */
function isHost(host: string): boolean {
  if (host.startsWith('[')) return isIPv6(host.slice(1, -1)) && !host.includes('%');
  // If the last label is all digits, this is either an IPv4 address or a mistake. It can't be a
  // name (RFC 3261 `toplabel`).
  if (/(^|\.)[0-9]+$/.test(host)) return isIPv4(host);
  return (
    host.length <= 253 && /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/.test(host)
  );
}

function reject(message: string): TargetResult {
  return { ok: false, message };
}
