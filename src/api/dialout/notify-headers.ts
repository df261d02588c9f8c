// Checks the headers that a client adds to its notifications. It rejects headers by name if they
// would break the request, or would let a client forge what receivers trust. `Accept` and
// `Content-Type` are accepted but dropped, because clients send them out of habit.

import type { MemberError } from '../../http/problem.ts';

/** Together with the signature, the headers must fit into the 8 KiB that most receivers allow. */
const maxHeaders = 32;
const maxBytes = 4_096;

/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
/** RFC 9110 section 5.5, minus obs-text, because receivers don't agree on non-ASCII bytes. */
const fieldValue = /^[\t\x20-\x7e]*$/;

const forbiddenHeaders: ReadonlyMap<string, string> = new Map([
  ['host', 'cannot be set: its value comes from the URL'],
  ...[
    'connection',
    'keep-alive',
    'proxy-authenticate',
    'proxy-authorization',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'expect',
    'http2-settings',
  ].map((name) => [name, 'cannot be set: it belongs to the connection'] as const),
  ['user-agent', 'cannot be set: it names this service'],
  ['content-length', 'cannot be set: its value comes from the body'],
  ['content-encoding', 'cannot be set: the body is sent as it is signed'],
  ...['gateway-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => [name, 'cannot be set: it carries the signature that receivers trust'] as const,
  ),
]);

export type NotifyHeadersResult =
  | { readonly ok: true; readonly headers: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

export function checkNotifyHeaders(given: Readonly<Record<string, string>>): NotifyHeadersResult {
  const entries = Object.entries(given);
  const errors: MemberError[] = [];
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  if (entries.length > maxHeaders || bytes > maxBytes) {
    const limit = `must have at most ${maxHeaders} headers and ${maxBytes} bytes`;
    errors.push({ path: 'notifyHeaders', message: limit });
  }
  const seen = new Set<string>();
  const headers: [string, string][] = [];
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    const problem = seen.has(lower) ? 'occurs twice' : headerProblem(lower, value);
    seen.add(lower);
    if (problem !== undefined) {
      errors.push({ path: `notifyHeaders.${name}`, message: `header ${name} ${problem}` });
    } else if (lower !== 'accept' && lower !== 'content-type') {
      headers.push([name, value]);
    }
  }
  return errors.length > 0
    ? { ok: false, errors }
    : { ok: true, headers: Object.fromEntries(headers) };
}

function headerProblem(lower: string, value: string): string | undefined {
  if (!token.test(lower)) return 'is not a legal header name';
  const reason = forbiddenHeaders.get(lower);
  if (reason !== undefined) return reason;
  if (!fieldValue.test(value)) return 'has a value with characters outside printable ASCII';
  if (lower === 'content-type' && !/^application\/json(\s*;.*)?$/i.test(value.trim())) {
    return 'can only be application/json';
  }
  return undefined;
}
