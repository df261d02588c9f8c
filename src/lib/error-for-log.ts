// Errors on their way into the log, without what callers sent: drivers put the values of a failed statement into the error,
// and those are numbers, addresses, rows, whatever was being stored.

import { stdSerializers } from 'pino';

/** Of PostgreSQL's errors: rows, keys and JSON of the statement. */
const membersWithValues = ['params', 'detail', 'where'] as const;
/** Deeper than any driver wraps. */
const deepestCause = 8;

/** Serializer of `err`. */
export function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const told: Record<string, unknown> = { ...stdSerializers.err(error) };
  for (const name of membersWithValues) delete told[name];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current instanceof Error; depth += 1) {
    forgetParameters(told, current);
    current = current.cause;
  }
  return told;
}

/** For a terminal: a line for each cause, the last of which says what to do. */
export function errorForPeople(error: unknown): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current instanceof Error; depth += 1) {
    lines.push('query' in current && 'params' in current ? shownQuery(current) : current.message);
    current = current.cause;
  }
  return lines.length === 0 ? String(error) : lines.join('\n  ');
}

/** drizzle-orm writes `Failed query: …`, a line break and `params: …`; what was wrong is said by its cause. */
function forgetParameters(told: Record<string, unknown>, error: Error): void {
  if (!('params' in error && 'query' in error)) return;
  const shown = shownQuery(error);
  for (const name of ['message', 'stack']) {
    const text = told[name];
    // A function, because the statement has `$1` in it.
    if (typeof text === 'string') told[name] = text.replaceAll(error.message, () => shown);
  }
}

function shownQuery(error: Error & { readonly query?: unknown }): string {
  return `Failed query: ${String(error.query)}`;
}
