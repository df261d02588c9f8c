// For notification receivers: `import { verify } from 'offhook/webhooks'`. This module imports only
// types from the gateway, so no gateway code is loaded at run time.

import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * A parsed body. If the notification reports an event that was selected by `notifyEvents`, its
 * `status` is `Event`.
 */
export type { NotificationBody } from '../calls/contract/notification.ts';

export type VerifyOptions = {
  /** Maximum difference between the signature's timestamp and `nowS`. Default: 300 s. */
  readonly toleranceS?: number;
  /** Current time in Unix seconds. Default: the system clock. */
  readonly nowS?: number;
};

export type Verification =
  | { readonly ok: true; readonly timestampS: number }
  | {
      readonly ok: false;
      readonly reason:
        | 'missing-header'
        | 'malformed-header'
        | 'raw-body-needed'
        | 'no-secret'
        | 'outside-tolerance'
        | 'no-match';
    };

const defaultToleranceS = 300;
/** Generous, because the gateway writes fewer than 200 characters for each live secret. */
const maxHeaderLength = 4_096;
const maxSignatures = 20;

/**
 * Checks the `Gateway-Signature` header of a notification: `t=<unix seconds>,v1=<hex>[,v1=<hex>…]`.
 * The hex is HMAC-SHA256 over `<t>.<raw body>`. The key is the whole webhook secret as text,
 * including `whsec_`. Never throws, even for invalid arguments.
 *
 * @param rawBody the bytes of the body as they arrived, before any parsing
 * @param secrets one secret, or several during a rotation
 */
export function verify(
  rawBody: string | Uint8Array,
  header: string | readonly string[] | null | undefined,
  secrets: string | readonly string[],
  options: VerifyOptions = {},
): Verification {
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array)) {
    return { ok: false, reason: 'raw-body-needed' };
  }
  const text = headerText(header);
  if (text === undefined) return { ok: false, reason: 'missing-header' };
  const parsed = parseHeader(text);
  if (parsed === undefined) return { ok: false, reason: 'malformed-header' };
  const keys = secretList(secrets);
  if (keys.length === 0) return { ok: false, reason: 'no-secret' };
  if (!matchesAny(rawBody, parsed, keys)) return { ok: false, reason: 'no-match' };
  const timestampS = Number(parsed.t);
  const nowS = options.nowS ?? Date.now() / 1_000;
  // The comparison is this way round so that a NaN tolerance rejects every signature.
  const isRecent = Math.abs(nowS - timestampS) <= (options.toleranceS ?? defaultToleranceS);
  return isRecent ? { ok: true, timestampS } : { ok: false, reason: 'outside-tolerance' };
}

function headerText(header: unknown): string | undefined {
  const value: unknown = Array.isArray(header) && header.length === 1 ? header[0] : header;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function secretList(secrets: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(secrets) ? secrets : [secrets];
  // An empty key would accept any signature.
  return list.filter((secret): secret is string => typeof secret === 'string' && secret !== '');
}

type Parsed = { readonly t: string; readonly signatures: readonly Buffer[] };

function matchesAny(
  rawBody: string | Uint8Array,
  { t, signatures }: Parsed,
  keys: readonly string[],
): boolean {
  // Compare all signatures, so the time taken doesn't reveal which one matches.
  let matches = false;
  for (const key of keys) {
    const expected = createHmac('sha256', key).update(`${t}.`).update(rawBody).digest();
    for (const signature of signatures) {
      if (timingSafeEqual(expected, signature)) matches = true;
    }
  }
  return matches;
}

function parseHeader(text: string): Parsed | undefined {
  if (text.length > maxHeaderLength) return undefined;
  const members = text.split(',').map((part) => splitOnce(part.trim()));
  const valuesOf = (name: string) =>
    members.filter(([known]) => known === name).map(([, value]) => value);
  const [t, ...more] = valuesOf('t');
  if (t === undefined || more.length > 0 || !/^\d{1,12}$/.test(t)) return undefined;
  // Skip malformed signatures and later signature versions, because another signature may match.
  const signatures = valuesOf('v1')
    .filter((value) => /^[0-9a-f]{64}$/i.test(value))
    .map((value) => Buffer.from(value, 'hex'));
  if (signatures.length === 0 || signatures.length > maxSignatures) return undefined;
  return { t, signatures };
}

function splitOnce(part: string): readonly [string, string] {
  const at = part.indexOf('=');
  return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
}
