// Strips client data from errors before we log them. Database drivers attach the failed statement's
// values to the error, and these values can be phone numbers, addresses or whole rows.

import { stdSerializers } from 'pino';

/**
 * Fields of a driver's error that contain such values. PostgreSQL's errors quote rows, keys and
 * JSON. The pool's errors carry the connection with its prepared statements.
 */
const fieldsWithValues = ['detail', 'where', 'client'] as const;
/** We print this many nested causes, because no driver nests causes more deeply. */
const maxCauses = 8;

/** The logger's serializer for the `err` field. */
export function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const logged: Record<string, unknown> = { ...stdSerializers.err(error) };
  for (const name of fieldsWithValues) delete logged[name];
  return logged;
}

/** Formats an error for a terminal, with one line per cause and the innermost cause last. */
export function errorForPeople(error: unknown): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < maxCauses && current instanceof Error; depth += 1) {
    lines.push(current.message);
    current = current.cause;
  }
  return lines.length === 0 ? String(error) : lines.join('\n  ');
}
