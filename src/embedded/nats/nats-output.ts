// What a nats-server writes, in the log of the process. It writes into a file, which outlives us both; we read what is added.

import { closeSync, openSync, readSync, statSync, watch } from 'node:fs';
import type { Logger } from '../../lib/logger.ts';

/** `[1234] 2026/11/22 08:03:07.966 [WRN] …`; its information is for who looks for something. */
const linePattern = /^\[\d+\] \S+ \S+ \[([A-Z]{3})\] (.*)$/;
const levels = {
  TRC: 'trace',
  DBG: 'trace',
  INF: 'debug',
  WRN: 'warn',
  ERR: 'error',
  FTL: 'error',
} as const;

const tailBytes = 2_048;
/** At once; what is longer comes with the next pieces. */
const pieceBytes = 64 * 1_024;

/** Logs each line that is added, from the beginning. Returns what ends it, after what is there has been read. */
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
  // Not being told of lines is no reason to go without a server.
  watcher.on('error', (error) => logger.warn({ err: error }, 'nats-server is not listened to'));
  return () => {
    readOn();
    watcher.close();
  };
}

/** Of our own configuration, which no other user can read. */
const expected = 'Plaintext passwords detected';

function logOutput(line: string, logger: Logger): void {
  const [, level = 'WRN', output = line] = linePattern.exec(line) ?? [];
  const ours = output.startsWith(expected) ? 'debug' : levels[level as keyof typeof levels];
  logger[ours ?? 'warn']({ part: 'nats-server', output }, 'nats-server wrote');
}

export function readTail(path: string): string {
  try {
    return readPiece(path, Math.max(0, statSync(path).size - tailBytes)).toString('utf8');
  } catch {
    return '';
  }
}

/** Empty: there is no more, or no file. */
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
