// Members that no schema knows. Later versions may add some, and dialers send members of their own:
// they are accepted, and named in the answer. But `timeoutInMS` was meant to do something: a near
// miss of a known member is refused.

import { z } from 'zod';
import { nearMisses } from '../../lib/near-miss.ts';
import type { MemberError } from './schema.ts';

export type UnknownMembers = {
  /** Near misses, each with what is meant. */
  readonly errors: readonly MemberError[];
  /** Paths of the others. */
  readonly ignored: readonly string[];
};

/** Bounds each list: an answer tells a person what to mend, and stays far smaller than the body. */
const mostNamed = 50;
/** More unknown members are no typing errors. Comparing this many takes some milliseconds. */
const mostCompared = 100;
const longestPath = 128;

/** A word of telephony for somebody else: nobody who writes it means `caller`. */
const otherWord = /^callee$/i;

/** In an answer. */
export const ignoredMembers: z.ZodType<readonly string[]> = z
  .array(z.string())
  .describe(`paths of members that do nothing, because none is called so; the first ${mostNamed}`);

/**
 * @param known names of members, each with the one to write: itself, or the documented spelling
 * @param prefix of the paths, e.g. `timers.`
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
    const isCompared = index < mostCompared && !otherWord.test(name);
    const near = isCompared ? nearMisses(name, known.keys()) : [];
    const path = pathOf(`${prefix}${name}`);
    if (near.length === 0) ignored.push(path);
    else {
      const meant = [...new Set(near.map((each) => known.get(each)))];
      errors.push({ path, message: `is not known; ${meant.join(' or ')} is` });
    }
  }
  return { errors: errors.slice(0, mostNamed), ignored: ignored.slice(0, mostNamed) };
}

export const nothingUnknown: UnknownMembers = { errors: [], ignored: [] };

/** What several objects of one body have. */
export function allUnknown(parts: readonly UnknownMembers[]): UnknownMembers {
  return {
    errors: parts.flatMap(({ errors }) => errors).slice(0, mostNamed),
    ignored: parts.flatMap(({ ignored }) => ignored).slice(0, mostNamed),
  };
}

export function namesOf(shape: object): ReadonlyMap<string, string> {
  return new Map(Object.keys(shape).map((name) => [name, name]));
}

/** Is stored with the answer, and comes back the same: without what a database refuses. */
function pathOf(path: string): string {
  return path.slice(0, longestPath).replaceAll(/\p{Cc}|\p{Cs}/gu, '\ufffd');
}
