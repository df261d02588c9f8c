// What an app proves itself with, as it is made and told once.

import { createHash, randomBytes } from 'node:crypto';

export type AppCredentials = {
  readonly appId: string;
  readonly accountId: string;
  readonly bots: readonly string[];
  readonly apiKey: string;
  readonly jwtSecret: string;
  /** `whsec_` and the base64 of 32 bytes. */
  readonly webhookSecret: string;
  /** What bots know as the auth token: it signs the upgrade of a stream, and their requests to hang up. */
  readonly streamSecret: string;
};

export const rotatable = ['api-key', 'jwt', 'webhook-secret', 'stream'] as const;
export type RotatableCredential = (typeof rotatable)[number];

/** How long a former credential may live on: a client that has not changed over by then never will. */
export const longestGraceS = 31 * 86_400;

/** Tokens of the command line live for a minute: a shorter cap would refuse them. */
export const shortestTokenMaxTtlS = 60;
/** Ten years: as good as none. */
export const longestTokenMaxTtlS = 315_360_000;

export const apiKeyPattern = /^ofk_[A-Za-z0-9_-]{43}$/;

export function newApiKey(): string {
  return `ofk_${randomBytes(32).toString('base64url')}`;
}

/** 64 characters: a full key for every HMAC, up to HS512. */
export function newJwtSecret(): string {
  return randomBytes(48).toString('base64url');
}

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

export function newStreamSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Names a JWT key where the key itself must not stand. */
export function jwtKeyId(key: string): string {
  return createHash('sha256').update('jwt-key\n').update(key).digest('base64url');
}

/**
 * Random and long, so that a slow hash would add nothing. Keys are looked up by it, with no care for the time that takes: what
 * the time tells is how much of the hash was right, and an attacker cannot make a key whose hash begins as wished.
 */
export function hashApiKey(apiKey: string): string {
  return createHash('sha256').update(apiKey).digest('hex');
}
