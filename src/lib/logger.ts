// The process's only pino logger. Log messages are static, so put the data into fields. Phone
// numbers and SIP URIs may only appear under `pii`, which is redacted. Never log a secret.

import { isMainThread } from 'node:worker_threads';
import { type Logger as PinoLogger, pino } from 'pino';
import { PinoPretty as pretty } from 'pino-pretty';
import { errorForLog } from './error-for-log.ts';

export type Logger = PinoLogger;

export const logSerializers = { err: errorForLog };

/**
 * Creates the logger. An `error` pages an operator, and a `warn` is something to look into this
 * week. At `info` we log one line per step in a call's or the process's life cycle, whereas at
 * `debug` we may log single packets.
 */
export function createLogger(options: {
  readonly level: string;
  readonly nodeId: string;
  /** Set this for commands that print data for other programs on stdout. */
  readonly toStderr?: boolean;
  /** Writes readable lines for a terminal. Default: JSON lines. */
  readonly pretty?: boolean;
  /** Worker threads only: one word that names the thread's job. */
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
  // The main thread relays this output (see `relayOutput` in `threads/worker-threads.ts`). We can't
  // let both threads write to the file descriptor, because their lines could get mixed up.
  if (!isMainThread) return process.stdout;
  const fd = options.toStderr === true ? 2 : 1;
  return options.pretty === true ? forPeople(options.level, fd) : pino.destination(fd);
}

/**
 * Writes readable lines. At level `info`, the threads' own `info` lines are dropped, because the
 * code that started the thread logs the same success.
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

/** Writes a formatted line unchanged, in order with the logger's own lines. */
export function writeLine(logger: Logger, line: string): void {
  const { [pino.symbols.streamSym]: stream } = logger as unknown as {
    readonly [pino.symbols.streamSym]: { write(text: string): void };
  };
  stream.write(`${line}\n`);
}

export const silentLogger: Logger = pino({ level: 'silent' });
