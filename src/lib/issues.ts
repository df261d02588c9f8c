// Rewords zod's issues for API users and operators.

import type { z } from 'zod';

/**
 * Pass this to zod, as in `schema.safeParse(value, { error: describeIssues })`.
 * @returns undefined to keep zod's own message
 */
export function describeIssues(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required';
      return `must be ${article(issue.expected === 'record' ? 'object' : issue.expected)}`;
    case 'invalid_value':
      if (issue.input === undefined) return 'is required';
      return `must be one of ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return `must be at least ${issue.minimum}${unitOf(issue.origin)}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'unrecognized_keys':
      return `unknown: ${issue.keys.join(', ')}`;
    case 'invalid_format':
    case 'not_multiple_of':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return undefined;
    default:
      return undefined;
  }
}

function article(type: string): string {
  if (type === 'int') return 'an integer';
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' items long' : '';
}

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>;

/**
 * Returns the issues with those of a union replaced by the issues of the alternative that was
 * meant, e.g. of the object in `object | boolean`. It is the one whose members are wrong, rather
 * than its type.
 */
export function detailedIssues(issues: readonly z.core.$ZodIssue[]): readonly Issue[] {
  return issues.flatMap((issue): readonly Issue[] => {
    if (issue.code !== 'invalid_union') return [issue];
    const meant = issue.errors.filter((errors) => errors.some(({ path }) => path.length > 0));
    const [only] = meant;
    if (only === undefined || meant.length > 1) return [issue];
    return detailedIssues(only).map(({ path, message }) => ({
      path: [...issue.path, ...path],
      message,
    }));
  });
}
