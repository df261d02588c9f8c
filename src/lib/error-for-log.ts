// Removes data that clients sent from errors before they are logged. Database drivers put values of
// the failed statement into an error: phone numbers, addresses, rows, or anything else that was
// being stored.

import { stdSerializers } from 'pino';

/**
 * Members of a driver's error that hold such values: rows, keys and JSON in PostgreSQL's errors,
 * and in the pool's errors the connection with its prepared statements.
 */
const membersWithValues = ['detail', 'where', 'client'] as const;
/** Bounds the chain of causes. No driver nests them more deeply. */
const deepestCause = 8;

/** The log's serializer for `err`. */
export function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const logged: Record<string, unknown> = { ...stdSerializers.err(error) };
  for (const name of membersWithValues) delete logged[name];
  return logged;
}

/** Formats an error for a terminal, one line for each cause. The innermost cause comes last. */
export function errorForPeople(error: unknown): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current instanceof Error; depth += 1) {
    lines.push(current.message);
    current = current.cause;
  }
  return lines.length === 0 ? String(error) : lines.join('\n  ');
}
