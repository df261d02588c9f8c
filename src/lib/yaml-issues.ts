// Finds the line of a YAML file that a zod finding is about, and the finding's message.

import { type Document, isNode, type LineCounter } from 'yaml';
import type { z } from 'zod';

/** For a bad key, zod keeps the real message one level further down. */
export function messageOf(issue: z.core.$ZodIssue): string {
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  return inner?.message ?? issue.message;
}

/**
 * Returns the line of the field. If the field is absent, returns the line of the nearest element
 * around it.
 */
export function lineOf(
  document: Document,
  lines: LineCounter,
  path: readonly PropertyKey[],
): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
