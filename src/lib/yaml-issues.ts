// Finds a zod issue's message, and the line in the YAML file that the issue refers to.

import { type Document, isNode, type LineCounter } from 'yaml';
import type { z } from 'zod';

/** If a key is invalid, zod keeps the real message one level further down. */
export function messageOf(issue: z.core.$ZodIssue): string {
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  return inner?.message ?? issue.message;
}

/** Returns the field's line, or the nearest enclosing element's line if the field is missing. */
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
