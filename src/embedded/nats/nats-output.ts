// Copies the output of our private nats-server into the gateway's log. The server writes to a file,
// which we read as it grows.

import { closeSync, openSync, readSync, statSync, watch } from 'node:fs';
import type { Logger } from '../../lib/logger.ts';

/** `[1234] 2026/11/22 08:03:07.966 [WRN] …` */
const linePattern = /^\[\d+\] \S+ \S+ \[([A-Z]{3})\] (.*)$/;
/** Maps the server's log levels to ours. Its `INF` lines only help with debugging. */
const levels = {
  TRC: 'trace',
  DBG: 'trace',
  INF: 'debug',
  WRN: 'warn',
  ERR: 'error',
  FTL: 'error',
} as const;

const tailBytes = 2_048;
/** We read the file in chunks of up to this size. */
const pieceBytes = 64 * 1_024;

/**
 * Logs each line of the file, starting at the beginning. Returns a function that logs the remaining
 * lines and stops.
 */
export function followOutput(path: string, logger: Logger): () => void {
  let offset = 0;
  let rest = '';
  const readOn = (): void => {
    for (let piece = readPiece(path, offset); piece.length > 0; piece = readPiece(path, offset)) {
      offset += piece.length;
      const lines = (rest + piece.toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') logOutput(line, logger);
    }
  };
  const watcher = watch(path, { persistent: false }, readOn);
  // We can do without the server's log lines, so this is just a warning.
  watcher.on('error', (error) =>
    logger.warn({ err: error }, 'the output of nats-server is no longer watched'),
  );
  return () => {
    readOn();
    watcher.close();
  };
}

/**
 * The server warns that its configuration file contains a password, but nobody else can read that
 * file.
 */
const expected = 'Plaintext passwords detected';

function logOutput(line: string, logger: Logger): void {
  const [, level = 'WRN', output = line] = linePattern.exec(line) ?? [];
  const logLevel = output.startsWith(expected) ? 'debug' : levels[level as keyof typeof levels];
  logger[logLevel ?? 'warn']({ part: 'nats-server', output }, 'nats-server wrote');
}

export function readTail(path: string): string {
  try {
    return readPiece(path, Math.max(0, statSync(path).size - tailBytes)).toString('utf8');
  } catch {
    return '';
  }
}

/** Returns an empty buffer at the end of the file, or if the file is missing. */
function readPiece(path: string, offset: number): Buffer {
  try {
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(pieceBytes);
      return buffer.subarray(0, readSync(file, buffer, 0, pieceBytes, offset));
    } finally {
      closeSync(file);
    }
  } catch {
    return Buffer.alloc(0);
  }
}
