// One pino logger for the process. Messages are static, fields carry the data. Phone numbers and SIP URIs go only under
// `pii`, which is redacted unless somebody debugs on purpose; secrets never reach a log call at all.

import { type Logger as PinoLogger, pino } from 'pino';

export type Logger = PinoLogger;

/** Levels: error pages someone, warn wants a look this week, info is one line per step of a life, debug is packets. */
export function createLogger(options: {
  readonly level: string;
  readonly nodeId: string;
  /** For commands whose standard output is read by programs. */
  readonly toStderr?: boolean;
}): Logger {
  return pino(
    {
      level: options.level,
      base: { nodeId: options.nodeId },
      redact: { paths: ['pii', '*.pii', 'req.headers'], censor: '***' },
    },
    options.toStderr === true ? pino.destination(2) : undefined,
  );
}

export const silentLogger: Logger = pino({ level: 'silent' });
