// Identifiers that come from outside, in paths, queries, headers, bodies and messages. Each has one
// of two forms. Neither form allows characters that the database refuses, or more characters than
// an index takes.

import { z } from 'zod';

const longestId = 128;

/**
 * Ids of accounts, bots, apps and tables. They become tokens of NATS subjects and segments of
 * paths.
 */
const plainPattern = /^[A-Za-z0-9_-]{1,128}$/;
export const plainId = z
  .string()
  .regex(plainPattern, 'must be 1 to 128 letters, digits, "_" or "-"');

export function isId(text: string): boolean {
  return plainPattern.test(text);
}

/**
 * An identifier that clients choose freely. It must not contain control characters or unpaired
 * surrogates, because PostgreSQL accepts neither U+0000 nor unpaired surrogates.
 */
export function identifierUpTo(longest: number) {
  return z
    .string()
    .min(1)
    .max(longest)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must be text without control characters');
}
export const identifier = identifierUpTo(longestId);

const nilUuid = '00000000-0000-0000-0000-000000000000';

/** Fewer characters than this would match too many rows of a large table. */
export const shortestUuidStart = 4;

/** Returns true if `text` is a UUID or the beginning of a UUID. */
export function startsUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(`${text}${nilUuid.slice(text.length)}`);
}

/**
 * Returns the first and the last UUID that begin with `start`. A range between them works in every
 * collation of the database: the hyphens are at the same places, and digits sort before letters.
 */
export function uuidsFrom(start: string): { readonly first: string; readonly last: string } {
  const rest = nilUuid.slice(start.length);
  return { first: `${start}${rest}`, last: `${start}${rest.replaceAll('0', 'f')}` };
}
