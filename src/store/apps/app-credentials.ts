// The credentials of an app. The secrets are generated here and shown once.

import { createHash, randomBytes } from 'node:crypto';

export type AppCredentials = {
  readonly appId: string;
  readonly accountId: string;
  readonly bots: readonly string[];
  readonly apiKey: string;
  readonly jwtSecret: string;
  /** `whsec_` and the base64 of 32 bytes. */
  readonly webhookSecret: string;
  /**
   * Bots know this as the auth token. It signs the upgrade of a stream, and the bot's requests to
   * hang up.
   */
  readonly streamSecret: string;
};

export const rotatable = ['api-key', 'jwt', 'webhook-secret', 'stream'] as const;
export type RotatableCredential = (typeof rotatable)[number];

/**
 * The longest time that a former credential may stay valid. A client that has not switched by then
 * never will.
 */
export const longestGraceS = 31 * 86_400;

/** Tokens of the command line live for a minute, so a shorter cap would refuse them. */
export const shortestTokenMaxTtlS = 60;
/** Ten years, which is effectively no cap. */
export const longestTokenMaxTtlS = 315_360_000;

export const apiKeyPattern = /^ofk_[A-Za-z0-9_-]{43}$/;

export function newApiKey(): string {
  return `ofk_${randomBytes(32).toString('base64url')}`;
}

/** Returns 64 characters, a full key for every HMAC up to HS512. */
export function newJwtSecret(): string {
  return randomBytes(48).toString('base64url');
}

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

export function newStreamSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Identifies a JWT key where the key itself must not appear. */
export function jwtKeyId(key: string): string {
  return createHash('sha256').update('jwt-key\n').update(key).digest('base64url');
}

/**
 * Hashes an API key. The key is random and long, so a slow hash would add nothing. Look-ups by the
 * hash need no constant time: the time could only reveal how much of the hash matched, and an
 * attacker cannot make a key whose hash begins as required.
 */
export function hashApiKey(apiKey: string): string {
  return createHash('sha256').update(apiKey).digest('hex');
}
