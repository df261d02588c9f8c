// An app's credentials. The secrets are generated here and only shown once.

import { createHash, randomBytes } from 'node:crypto';

export type AppCredentials = {
  readonly appId: string;
  readonly accountId: string;
  readonly bots: readonly string[];
  readonly apiKey: string;
  readonly jwtSecret: string;
  /** `whsec_`, followed by 32 bytes in base64. */
  readonly webhookSecret: string;
  /**
   * Bots know this as the auth token. It signs a stream's upgrade request, and the bot's requests
   * to hang up.
   */
  readonly streamSecret: string;
};

export const rotatable = ['api-key', 'jwt', 'webhook-secret', 'stream'] as const;
export type RotatableCredential = (typeof rotatable)[number];

/**
 * A previous credential may remain valid for at most this long. If a client hasn't switched by
 * then, it never will.
 */
export const maxGraceS = 31 * 86_400;

/** The command line's tokens live for a minute, so a lower cap would reject them. */
export const minTokenMaxTtlS = 60;
/** Ten years, which is effectively no cap. */
export const maxTokenMaxTtlS = 315_360_000;

export const apiKeyPattern = /^ofk_[A-Za-z0-9_-]{43}$/;

export function newApiKey(): string {
  return `ofk_${randomBytes(32).toString('base64url')}`;
}

/** Returns 64 characters, which is a full key for every HMAC up to HS512. */
export function newJwtSecret(): string {
  return randomBytes(48).toString('base64url');
}

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

export function newStreamSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns an id for a JWT key, for places where the key itself must not appear. */
export function jwtKeyId(key: string): string {
  return createHash('sha256').update('jwt-key\n').update(key).digest('base64url');
}

/**
 * Hashes an API key. The key is random and long, so a slow hash would add nothing. Looking up the
 * hash doesn't have to be constant-time either. The timing could only reveal how much of the hash
 * matched, and an attacker can't construct a key whose hash starts with given bytes.
 */
export function hashApiKey(apiKey: string): string {
  return createHash('sha256').update(apiKey).digest('hex');
}
