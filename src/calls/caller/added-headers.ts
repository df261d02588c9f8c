// Checks the headers that an application adds to the INVITE of a call, or to the INVITE or REFER of
// a transfer. Rejects headers that the SIP stack or this gateway sets itself. The trunk's
// `passHeaders` decide about the others.

import type { MemberError } from '../contract/schema.ts';

const maxHeaders = 16;
/**
 * The application's share of a control frame to the SIP engine, which has at most 4,036 bytes. The
 * rest is for the SDP (up to 700 bytes), the gateway's and the trunk's headers, and credentials.
 */
export const maxAddedBytes = 2_048;

export const headerName = /^[A-Za-z0-9!%*_+`'~.-]{1,64}$/;
const fieldValue = /^[\t\x20-\x7e]*$/;

const reserved: ReadonlySet<string> = new Set([
  ...['from', 'to', 'via', 'contact', 'route', 'record-route', 'max-forwards', 'path'],
  ...['call-id', 'cseq', 'replaces', 'authorization', 'proxy-authorization', 'require'],
  ...['proxy-require', 'supported', 'allow', 'event', 'subscription-state', 'rack', 'rseq'],
  ...['session-expires', 'min-se', 'identity'],
  // Compact forms of these and other SIP headers (RFC 3261, section 7.3.3, and the IANA registry).
  ...['f', 't', 'v', 'm', 'i', 'c', 'e', 'l', 'k', 'r', 'b', 'o', 'u', 'x', 'y', 'd', 'j', 'a'],
]);

/** Whether only the SIP stack or this gateway may set the header. */
export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return reserved.has(lower) || /^(refer|content|referred)-/.test(lower);
}

export type AddedHeaders = {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The value of the Identity header. It shares the limit of bytes with `headers`. */
  readonly identity?: string | undefined;
  /** The display name, which counts twice: it may be in From and in P-Asserted-Identity. */
  readonly callerName?: string | undefined;
};

export type HeaderPolicy = {
  /**
   * Which headers the trunk must pass on. `every`: all of them, because the trunk's carrier gets
   * them with each call. `trusted`: only those that carriers accept from trusted senders.
   */
  readonly mustPass: 'every' | 'trusted';
  /** Whether the trunk passes on a header. Undefined if the call uses no trunk. */
  readonly passes?: ((name: string) => boolean) | undefined;
};

/** Checks the headers. `prefix` comes before the field names in error paths. */
export function checkAddedHeaders(
  added: AddedHeaders,
  policy: HeaderPolicy,
  prefix = '',
): readonly MemberError[] {
  const errors = sizeErrors(added, prefix);
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(added.headers ?? {})) {
    const lower = name.toLowerCase();
    const problem = seen.has(lower) ? 'is given twice' : problemOf(lower, value, policy);
    seen.add(lower);
    if (problem !== undefined) {
      errors.push({ path: `${prefix}headers.${name}`, message: `header ${name} ${problem}` });
    }
  }
  return errors;
}

function sizeErrors(
  { headers = {}, identity = '', callerName = '' }: AddedHeaders,
  prefix: string,
): MemberError[] {
  const entries = Object.entries(headers);
  const bytes = entries.reduce(
    (sum, [name, value]) => sum + name.length + value.length + 4,
    identity.length + 2 * Buffer.byteLength(callerName),
  );
  if (entries.length <= maxHeaders && bytes <= maxAddedBytes) return [];
  const field = entries.length > 0 ? 'headers' : 'identity';
  const headerLimit = entries.length > 0 ? `${maxHeaders} headers and ` : '';
  const shared =
    identity + callerName === '' ? '' : ', which headers, identity and callerName (twice) share';
  const message = `must have at most ${headerLimit}${maxAddedBytes} bytes${shared}`;
  return [{ path: `${prefix}${field}`, message }];
}

function problemOf(
  lower: string,
  value: string,
  { mustPass, passes }: HeaderPolicy,
): string | undefined {
  if (!headerName.test(lower)) return 'is not a legal header name';
  if (lower === 'identity') return 'cannot be set: the field identity sets it';
  if (isReservedHeader(lower)) return 'cannot be set: the gateway writes it';
  if ((mustPass === 'every' || needsTrust(lower)) && passes?.(lower) !== true) {
    return passes === undefined
      ? 'needs a trunk with this header in its passHeaders'
      : 'is not in the passHeaders of its trunk';
  }
  if (!fieldValue.test(value)) return 'has a value with characters outside printable ASCII';
  return undefined;
}

/** Whether carriers only accept this header from trusted senders. */
function needsTrust(lower: string): boolean {
  return (
    lower.startsWith('p-') ||
    ['diversion', 'history-info', 'remote-party-id', 'privacy'].includes(lower)
  );
}
