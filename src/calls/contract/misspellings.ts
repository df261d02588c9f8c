// Finds members that no schema knows. Later versions may add members, and dialers send private
// ones, so unknown members are accepted and listed in the answer. A near miss of a known member,
// such as `timeoutInMS`, is refused: the client expects it to have an effect.

import { z } from 'zod';
import { nearMisses } from '../../lib/near-miss.ts';
import type { MemberError } from './schema.ts';

export type UnknownMembers = {
  /** Near misses, each with the name that was probably meant. */
  readonly errors: readonly MemberError[];
  /** Paths of the other unknown members. */
  readonly ignored: readonly string[];
};

/** Bounds each list, so that the answer stays readable and far smaller than the body. */
const maxNamed = 50;
/**
 * Members beyond this number are not compared: nobody makes that many typing errors, and 100
 * comparisons already take some milliseconds.
 */
const maxCompared = 100;
const maxPathLength = 128;

/**
 * A word that looks like a typing error but isn't: a client that writes `callee` does not mean
 * `caller`.
 */
const differentWord = /^callee$/i;

/** The member `ignored` of an answer. */
export const ignoredMembers: z.ZodType<readonly string[]> = z
  .array(z.string())
  .describe(`paths of unknown members, which have no effect; at most ${maxNamed}`);

/**
 * Finds the unknown members of an object.
 *
 * @param known names of members, each with the name to suggest: itself, or the documented spelling
 * @param prefix what precedes the paths, e.g. `timers.`
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

/** Joins the unknown members of several objects in one body. */
export function allUnknown(parts: readonly UnknownMembers[]): UnknownMembers {
  return {
    errors: parts.flatMap(({ errors }) => errors).slice(0, maxNamed),
    ignored: parts.flatMap(({ ignored }) => ignored).slice(0, maxNamed),
  };
}

export function namesOf(shape: object): ReadonlyMap<string, string> {
  return new Map(Object.keys(shape).map((name) => [name, name]));
}

/**
 * Replaces characters that a database refuses. The path is stored with the answer, and a replayed
 * answer must be identical.
 */
function pathOf(path: string): string {
  return path.slice(0, maxPathLength).replaceAll(/\p{Cc}|\p{Cs}/gu, '\ufffd');
}
