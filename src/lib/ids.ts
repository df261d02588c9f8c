// Identifiers that come from outside, in paths, queries, headers, bodies and messages: whichever they are, they are of one of the
// two forms here, so that none of them holds what a database refuses, or is longer than what an index takes.

import { z } from 'zod';

const longestId = 128;

/** Of accounts, bots, apps and tables: they are tokens of NATS subjects and segments of paths. */
const plainPattern = /^[A-Za-z0-9_-]{1,128}$/;
export const plainId = z
  .string()
  .regex(plainPattern, 'must be 1 to 128 letters, digits, "_" or "-"');

export function isId(text: string): boolean {
  return plainPattern.test(text);
}

/** Of what others name as they like: neither U+0000 nor half a character, which PostgreSQL does not take, nor other controls. */
export function identifierUpTo(longest: number) {
  return z
    .string()
    .min(1)
    .max(longest)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must be text without control characters');
}
export const identifier = identifierUpTo(longestId);

const noUuid = '00000000-0000-0000-0000-000000000000';

/** Fewer characters than this would name too many rows of a large table. */
export const shortestUuidStart = 4;

/** Whether UUIDs may begin with `text`, or are it. */
export function startsUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(`${text}${noUuid.slice(text.length)}`);
}

/**
 * The first and the last UUID that begin with `start`. The UUIDs between them are the same in every
 * collation of a database: hyphens stand at the same places, and digits sort before letters.
 */
export function uuidsFrom(start: string): { readonly first: string; readonly last: string } {
  const rest = noUuid.slice(start.length);
  return { first: `${start}${rest}`, last: `${start}${rest.replaceAll('0', 'f')}` };
}
