// Signs a notification, afresh for each attempt: our own `Gateway-Signature`, and the Standard Webhooks headers for
// receivers that have a library for those.

import { createHmac } from 'node:crypto';

const secretPrefix = 'whsec_';

export type SignatureInput = {
  readonly eventId: string;
  readonly timestampS: number;
  /** To the byte what is sent. */
  readonly body: string;
  /** Every live secret of the app, `whsec_…`: several during a rotation. */
  readonly secrets: readonly string[];
};

export function signatureHeaders(input: SignatureInput): Readonly<Record<string, string>> {
  const { eventId, timestampS, body, secrets } = input;
  const own = secrets.map(
    (secret) => `v1=${hmac(Buffer.from(secret, 'utf8'), `${timestampS}.${body}`, 'hex')}`,
  );
  const standard = secrets.map(
    (secret) => `v1,${hmac(standardKey(secret), `${eventId}.${timestampS}.${body}`, 'base64')}`,
  );
  return {
    'gateway-signature': [`t=${timestampS}`, ...own].join(','),
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': standard.join(' '),
  };
}

/** Standard Webhooks: the key is what the base64 after the prefix stands for. */
function standardKey(secret: string): Buffer {
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret;
  return Buffer.from(text, 'base64');
}

function hmac(key: Buffer, content: string, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', key).update(content, 'utf8').digest(encoding);
}

/**
 * Merges the headers of a notification: the caller's as they were given, and ours, which win.
 *
 * Later ones beat earlier ones whatever the case of the name.
 */
export function mergeHeaders(
  callers: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const merged = new Map<string, readonly [string, string]>();
  for (const headers of [{ accept: '*/*' }, callers, ours]) {
    for (const [name, value] of Object.entries(headers)) {
      merged.set(name.toLowerCase(), [name, value]);
    }
  }
  return Object.fromEntries(merged.values());
}
