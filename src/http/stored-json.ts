// Checks clients' JSON before it is stored. We limit its size and depth, and reject values that
// PostgreSQL can't store.

/**
 * Honest clients don't nest deeper than this. An attacker might, to break code that walks through
 * JSON recursively, including PostgreSQL's parser.
 */
const maxDepth = 32;

/**
 * Checks a value that was parsed from JSON.
 *
 * @returns a description of what is wrong with the value, or undefined if it may be stored
 */
export function jsonProblem(value: unknown, maxBytes: number): string | undefined {
  const problem = walk(value, 0);
  if (problem !== undefined) return problem;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > maxBytes ? `must be at most ${maxBytes} bytes of JSON` : undefined;
}

function walk(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return stringProblem(value);
  // JSON.parse reads 1e999 as Infinity, which would be stored as null.
  if (typeof value === 'number' && !Number.isFinite(value))
    return 'must have numbers below 1.8e308';
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth >= maxDepth) return `must not be nested more than ${maxDepth} levels deep`;
  for (const [key, child] of Object.entries(value)) {
    const problem = stringProblem(key) ?? walk(child, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** PostgreSQL's `jsonb` accepts neither U+0000 nor half a surrogate pair. */
function stringProblem(text: string): string | undefined {
  if (text.includes('\u0000')) return 'must not contain the character U+0000';
  return /[\ud800-\udfff]/u.test(text) ? 'must be well-formed Unicode' : undefined;
}

/**
 * Serialises a value with its fields in alphabetical order, so that equal values produce equal
 * texts, which we can hash or compare.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, child: unknown) =>
    typeof child === 'object' && child !== null && !Array.isArray(child)
      ? Object.fromEntries(Object.entries(child).sort(([a], [b]) => (a < b ? -1 : 1)))
      : child,
  );
}
