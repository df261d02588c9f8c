// Signs each attempt twice: with our own `Gateway-Signature`, and with Standard Webhooks headers
// for receivers that use one of those libraries.

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';

const secretPrefix = 'whsec_';

export type SignatureInput = {
  readonly eventId: string;
  readonly timestampS: number;
  /** The exact bytes that we send. */
  readonly body: string;
  /** The app's live secrets, `whsec_…`. During a rotation, an app has several. */
  readonly secrets: readonly string[];
};

export function signatureHeaders(input: SignatureInput): Readonly<Record<string, string>> {
  const { eventId, timestampS, body, secrets } = input;
  const own = secrets.map(
    (secret) => `v1=${hmac(keysOf(secret).own, `${timestampS}.${body}`, 'hex')}`,
  );
  const standard = secrets.map(
    (secret) => `v1,${hmac(keysOf(secret).standard, `${eventId}.${timestampS}.${body}`, 'base64')}`,
  );
  return {
    'gateway-signature': [`t=${timestampS}`, ...own].join(','),
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': standard.join(' '),
  };
}

type Keys = { readonly own: KeyObject; readonly standard: KeyObject };

/** A signature with a key that OpenSSL knows costs half as much. */
const knownKeys = new LRUCache<string, Keys>({ max: 1_000 });

function keysOf(secret: string): Keys {
  const keys = knownKeys.get(secret) ?? {
    own: createSecretKey(secret, 'utf8'),
    standard: createSecretKey(standardKey(secret)),
  };
  knownKeys.set(secret, keys);
  return keys;
}

/** Standard Webhooks defines the key as the base64-decoded text after the prefix. */
function standardKey(secret: string): Buffer {
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret;
  return Buffer.from(text, 'base64');
}

function hmac(key: KeyObject, content: string, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', key).update(content, 'utf8').digest(encoding);
}

/**
 * Merges the caller's headers with the gateway's. If both set a header (ignoring case), the
 * gateway's value wins.
 */
export function mergeHeaders(
  callerHeaders: Readonly<Record<string, string>>,
  gatewayHeaders: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const merged = new Map<string, readonly [string, string]>();
  for (const headers of [{ accept: '*/*' }, callerHeaders, gatewayHeaders]) {
    for (const [name, value] of Object.entries(headers)) {
      merged.set(name.toLowerCase(), [name, value]);
    }
  }
  return Object.fromEntries(merged.values());
}
