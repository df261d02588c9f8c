// A logger that keeps its lines as objects, in order.

import { pino } from 'pino';
import { type Logger, logSerializers } from '../../src/lib/logger.ts';

export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

export function recordedLogger(level = 'info'): {
  readonly logger: Logger;
  readonly lines: readonly LogLine[];
} {
  const lines: LogLine[] = [];
  const logger = pino(
    { level, serializers: logSerializers },
    { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) },
  );
  return { logger, lines };
}
