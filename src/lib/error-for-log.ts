// Prepares errors for the log without data that callers sent. Database drivers put values of a
// failed statement into the error: phone numbers, addresses, rows, or anything else that was being
// stored.

import { stdSerializers } from 'pino';

/**
 * Members of a driver's error that hold such values. PostgreSQL's errors hold rows, keys and JSON
 * of the statement. An error of the pool holds the connection, with the statements that it knows.
 */
const membersWithValues = ['detail', 'where', 'client'] as const;
/** No driver nests causes more deeply. */
const deepestCause = 8;

/** The log's serializer for `err`. */
export function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const logged: Record<string, unknown> = { ...stdSerializers.err(error) };
  for (const name of membersWithValues) delete logged[name];
  return logged;
}

/** Formats an error for a terminal: one line for each cause. The last line says what to do. */
export function errorForPeople(error: unknown): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current instanceof Error; depth += 1) {
    lines.push(current.message);
    current = current.cause;
  }
  return lines.length === 0 ? String(error) : lines.join('\n  ');
}
