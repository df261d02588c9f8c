// Where in a YAML file zod's findings are, and what they say.

import { type Document, isNode, type LineCounter } from 'yaml';
import type { z } from 'zod';

/** For a bad key zod keeps what is wrong with it one level down. */
export function messageOf(issue: z.core.$ZodIssue): string {
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  return inner?.message ?? issue.message;
}

/** Line of the field, or of the nearest thing around it that is there. */
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
