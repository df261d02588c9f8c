// One pino logger for the process. Messages are static; fields carry the data. Phone numbers and
// SIP URIs go only under `pii`, which is redacted. Secrets are never passed to a log call.

import { isMainThread } from 'node:worker_threads';
import { type Logger as PinoLogger, pino } from 'pino';
import { PinoPretty as pretty } from 'pino-pretty';
import { errorForLog } from './error-for-log.ts';

export type Logger = PinoLogger;

export const logSerializers = { err: errorForLog };

/**
 * Creates the logger. `error` pages an operator. `warn` should be looked at this week. `info` is
 * one line per step in the life of a call or the process. `debug` goes down to single packets.
 */
export function createLogger(options: {
  readonly level: string;
  readonly nodeId: string;
  /** For commands whose standard output is data for other programs. */
  readonly toStderr?: boolean;
  /** For people at a terminal. Default: JSON lines. */
  readonly pretty?: boolean;
  /** Only in a worker thread: one word that names the thread's job. */
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
  // The main thread relays this output (`relayOutput` in `threads/worker-threads.ts`). If both
  // threads wrote to the file descriptor, they could break up each other's lines.
  if (!isMainThread) return process.stdout;
  const fd = options.toStderr === true ? 2 : 1;
  return options.pretty === true ? forPeople(options.level, fd) : pino.destination(fd);
}

/**
 * Writes readable lines. At level `info` it drops the `info` lines of threads, because the code
 * that started a thread logs the same success.
 */
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

/** Writes a finished line unchanged, in order with the logger's own lines. */
export function writeLine(logger: Logger, line: string): void {
  const { [pino.symbols.streamSym]: stream } = logger as unknown as {
    readonly [pino.symbols.streamSym]: { write(text: string): void };
  };
  stream.write(`${line}\n`);
}

export const silentLogger: Logger = pino({ level: 'silent' });
