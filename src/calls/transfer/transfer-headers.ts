// Checks the headers that an application adds to a transfer's INVITE or REFER. Rejects headers that
// the SIP stack or this gateway sets itself. Headers that carriers trust are only accepted if the
// trunk passes them on.

import type { MemberError } from '../contract/schema.ts';

/** Far below the maximum size of a control frame to the SIP engine. */
const maxHeaders = 16;
const maxBytes = 2_048;

const headerName = /^[A-Za-z0-9!%*_+`'~.-]{1,64}$/;
const fieldValue = /^[\t\x20-\x7e]*$/;

const reserved: ReadonlySet<string> = new Set([
  ...['from', 'to', 'via', 'contact', 'route', 'record-route', 'max-forwards', 'path'],
  ...['call-id', 'cseq', 'replaces', 'authorization', 'proxy-authorization', 'require'],
  ...['proxy-require', 'supported', 'allow', 'event', 'subscription-state', 'rack', 'rseq'],
  ...['session-expires', 'min-se', 'identity'],
  // Compact forms of these and other SIP headers (RFC 3261, section 7.3.3, and the IANA registry).
  ...['f', 't', 'v', 'm', 'i', 'c', 'e', 'l', 'k', 'r', 'b', 'o', 'u', 'x', 'y', 'd', 'j', 'a'],
]);

/** Checks the headers. `passes` tells whether the trunk passes on a header. */
export function checkTransferHeaders(
  headers: Readonly<Record<string, string>>,
  passes: (name: string) => boolean,
  prefix: string,
): readonly MemberError[] {
  const entries = Object.entries(headers);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  const errors: MemberError[] = [];
  if (entries.length > maxHeaders || bytes > maxBytes) {
    const message = `must have at most ${maxHeaders} headers and ${maxBytes} bytes`;
    errors.push({ path: `${prefix}headers`, message });
  }
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    const problem = seen.has(lower) ? 'is given twice' : problemOf(lower, value, passes);
    seen.add(lower);
    if (problem !== undefined) {
      errors.push({ path: `${prefix}headers.${name}`, message: `header ${name} ${problem}` });
    }
  }
  return errors;
}

function problemOf(
  lower: string,
  value: string,
  passes: (name: string) => boolean,
): string | undefined {
  if (!headerName.test(lower)) return 'is not a legal header name';
  const isReserved = reserved.has(lower) || /^(refer|content|referred)-/.test(lower);
  if (isReserved) return 'cannot be set: the gateway writes it';
  if (needsTrust(lower) && !passes(lower)) return 'is not in the passHeaders of its trunk';
  if (!fieldValue.test(value)) return 'has a value with characters outside printable ASCII';
  return undefined;
}

/** Whether carriers only accept this header from trusted senders. */
function needsTrust(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    lower.startsWith('p-') ||
    ['diversion', 'history-info', 'remote-party-id', 'privacy'].includes(lower)
  );
}
