// Identifiers that clients send in paths, queries, headers, bodies and messages. There are two
// forms of identifiers, and neither of them allows characters that the database rejects or values
// that are too long to index.

import { z } from 'zod';

const maxIdLength = 128;

/**
 * An account, bot, app or table id. These ids become NATS subject tokens and path segments.
 */
const plainPattern = /^[A-Za-z0-9_-]{1,128}$/;
export const plainId = z
  .string()
  .regex(plainPattern, 'must be 1 to 128 letters, digits, "_" or "-"');

export function isId(text: string): boolean {
  return plainPattern.test(text);
}

/**
 * An identifier that clients choose freely, except that it can't contain control characters or
 * unpaired surrogates. (PostgreSQL accepts neither U+0000 nor unpaired surrogates.)
 */
export function identifierUpTo(maxLength: number) {
  return z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must be text without control characters');
}
export const identifier = identifierUpTo(maxIdLength);

const nilUuid = '00000000-0000-0000-0000-000000000000';

/** A shorter prefix would match too many rows in a large table. */
export const minUuidStartLength = 4;

/** Returns true if `text` is a UUID or a prefix of one. */
export function startsUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(`${text}${nilUuid.slice(text.length)}`);
}

/**
 * Returns the lowest and highest UUIDs that begin with `start`. A range query between them works in
 * every collation, because the hyphens are in the same places and digits sort before letters.
 */
export function uuidsFrom(start: string): { readonly first: string; readonly last: string } {
  const rest = nilUuid.slice(start.length);
  return { first: `${start}${rest}`, last: `${start}${rest.replaceAll('0', 'f')}` };
}
