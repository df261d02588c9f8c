// One pino logger for the process. Messages are static, fields carry the data. Phone numbers and SIP URIs go only under
// `pii`, which is redacted unless somebody debugs on purpose; secrets never reach a log call at all.

import { type Logger as PinoLogger, pino } from 'pino';
import { PinoPretty as pretty } from 'pino-pretty';
import { errorForLog } from './error-for-log.ts';

export type Logger = PinoLogger;

export const logSerializers = { err: errorForLog };

/** Levels: error pages someone, warn wants a look this week, info is one line per step of a life, debug is packets. */
export function createLogger(options: {
  readonly level: string;
  readonly nodeId: string;
  /** For commands whose standard output is read by programs. */
  readonly toStderr?: boolean;
  /** For people at a terminal; programs read JSON lines. */
  readonly pretty?: boolean;
}): Logger {
  return pino(
    {
      level: options.level,
      base: { nodeId: options.nodeId },
      serializers: logSerializers,
      redact: { paths: ['pii', '*.pii', 'req.headers'], censor: '***' },
    },
    destination(options),
  );
}

function destination(options: { readonly toStderr?: boolean; readonly pretty?: boolean }) {
  const fd = options.toStderr === true ? 2 : 1;
  return options.pretty === true
    ? pretty({ destination: fd, ignore: 'pid,hostname,nodeId', translateTime: 'HH:MM:ss.l' })
    : pino.destination(fd);
}

export const silentLogger: Logger = pino({ level: 'silent' });
