// One pino logger for the process. Messages are static, fields carry the data. Phone numbers and SIP URIs go only under
// `pii`, which is redacted unless it is shown on purpose, for debugging; secrets never reach a log call at all.

import { isMainThread } from 'node:worker_threads';
import { type Logger as PinoLogger, pino } from 'pino';
import { PinoPretty as pretty } from 'pino-pretty';
import { errorForLog } from './error-for-log.ts';

export type Logger = PinoLogger;

export const logSerializers = { err: errorForLog };

/** Levels: error pages an operator, warn wants a look this week, info is one line per step of a life, debug is packets. */
export function createLogger(options: {
  readonly level: string;
  readonly nodeId: string;
  /** For commands whose standard output is read by programs. */
  readonly toStderr?: boolean;
  /** For people at a terminal; programs read JSON lines. */
  readonly pretty?: boolean;
  /** Of a thread: what it is, in a word. */
  readonly part?: string;
}): Logger {
  const { nodeId, part } = options;
  return pino(
    {
      level: options.level,
      base: { nodeId, ...(part === undefined ? {} : { part }) },
      serializers: logSerializers,
      redact: { paths: ['pii', '*.pii', 'req.headers'], censor: '***' },
    },
    destination(options),
  );
}

function destination(options: {
  readonly level: string;
  readonly toStderr?: boolean;
  readonly pretty?: boolean;
}) {
  // The main thread reads it and passes it on (see thread-output.ts): two writers would tear each other's lines apart.
  if (!isMainThread) return process.stdout;
  const fd = options.toStderr === true ? 2 : 1;
  return options.pretty === true ? forPeople(options.level, fd) : pino.destination(fd);
}

/** What threads do well has been told by the thread that started them: for people, once is enough. */
function forPeople(level: string, fd: number) {
  const stream = pretty({
    destination: fd,
    ignore: 'pid,hostname,nodeId',
    translateTime: 'HH:MM:ss.l',
    singleLine: true,
  });
  const isRepeated = (line: string): boolean =>
    level === 'info' && line.startsWith('{"level":30,') && line.includes('"part":');
  return { write: (line: string) => isRepeated(line) || stream.write(line) };
}

/** A line as it is, in its place among the others. */
export function writeLine(logger: Logger, line: string): void {
  const { [pino.symbols.streamSym]: stream } = logger as unknown as {
    readonly [pino.symbols.streamSym]: { write(text: string): void };
  };
  stream.write(`${line}\n`);
}

export const silentLogger: Logger = pino({ level: 'silent' });
