// Finds fields that aren't in any schema. We accept such fields and list them in the response,
// because later versions may add fields and some dialers send private ones. A near miss such as
// `timeoutInMS` is rejected, however, because the client clearly expects the field to have an
// effect.

import { z } from 'zod';
import { nearMisses } from '../../lib/near-miss.ts';
import type { MemberError } from './schema.ts';

export type UnknownMembers = {
  /** Near misses, each with the field that was probably meant. */
  readonly errors: readonly MemberError[];
  /** Paths of all other unknown fields. */
  readonly ignored: readonly string[];
};

/** Bounds each list. This keeps the response readable and far smaller than the request body. */
const maxNamed = 50;
/**
 * We compare only this many unknown fields, because nobody makes that many typing errors and 100
 * comparisons already take a few milliseconds.
 */
const maxCompared = 100;
const maxPathLength = 128;

/** A word that looks like a typo but isn't: a client that writes `callee` doesn't mean `caller`. */
const differentWord = /^callee$/i;

/** The `ignored` field of a response. */
export const ignoredMembers: z.ZodType<readonly string[]> = z
  .array(z.string())
  .describe(`paths of unknown fields, which have no effect; at most ${maxNamed}`);

/**
 * Finds an object's unknown fields.
 *
 * @param known names of fields, each mapped to the name to suggest: itself, or the documented
 * spelling
 * @param prefix text to put before the paths, e.g. `timers.`
 */
export function unknownMembers(
  value: unknown,
  known: ReadonlyMap<string, string>,
  prefix = '',
): UnknownMembers {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return nothingUnknown;
  const errors: MemberError[] = [];
  const ignored: string[] = [];
  const unknown = Object.keys(value).filter((name) => !known.has(name));
  for (const [index, name] of unknown.entries()) {
    const isCompared = index < maxCompared && !differentWord.test(name);
    const near = isCompared ? nearMisses(name, known.keys()) : [];
    const path = pathOf(`${prefix}${name}`);
    if (near.length === 0) ignored.push(path);
    else {
      const meant = [...new Set(near.map((each) => known.get(each)))];
      errors.push({ path, message: `is unknown; did you mean ${meant.join(' or ')}?` });
    }
  }
  return { errors: errors.slice(0, maxNamed), ignored: ignored.slice(0, maxNamed) };
}

export const nothingUnknown: UnknownMembers = { errors: [], ignored: [] };

/** Joins the unknown fields found in several parts of one body. */
export function mergeUnknown(parts: readonly UnknownMembers[]): UnknownMembers {
  return {
    errors: parts.flatMap(({ errors }) => errors).slice(0, maxNamed),
    ignored: parts.flatMap(({ ignored }) => ignored).slice(0, maxNamed),
  };
}

export function namesOf(shape: object): ReadonlyMap<string, string> {
  return new Map(Object.keys(shape).map((name) => [name, name]));
}

/**
 * Replaces characters that the database would reject. The path is stored with the response, and a
 * replayed response must be identical.
 */
function pathOf(path: string): string {
  return path.slice(0, maxPathLength).replaceAll(/\p{Cc}|\p{Cs}/gu, '\ufffd');
}
