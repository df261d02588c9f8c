// Errors on their way into the log, without what callers sent: drivers put values of a failed statement into the error, and
// those are numbers, addresses, rows, whatever was being stored.

import { stdSerializers } from 'pino';

/** Of PostgreSQL's errors: rows, keys and JSON of the statement; of a pool's, the connection with the statements that it knows. */
const membersWithValues = ['detail', 'where', 'client'] as const;
/** Deeper than any driver wraps. */
const deepestCause = 8;

/** Serializer of `err`. */
export function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const logged: Record<string, unknown> = { ...stdSerializers.err(error) };
  for (const name of membersWithValues) delete logged[name];
  return logged;
}

/** For a terminal: a line for each cause, the last of which says what to do. */
export function errorForPeople(error: unknown): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current instanceof Error; depth += 1) {
    lines.push(current.message);
    current = current.cause;
  }
  return lines.length === 0 ? String(error) : lines.join('\n  ');
}
