// What worker threads write, in the log of the process. They cannot share its logger: their own one writes JSON lines to the
// thread's standard output, and those are passed on as they are. Anything else (WebAssembly on its way down, a library's
// warning) becomes a line of the log.

import { createInterface } from 'node:readline';
import type { Worker } from 'node:worker_threads';
import { type Logger, writeLine } from '../logger.ts';

export type ThreadOutput = {
  readonly logger: Logger;
  /** What the thread is, in a word. */
  readonly part: string;
};

/** The thread must have been started with `stdout` and `stderr`. */
export function relayOutput(worker: Worker, { logger, part }: ThreadOutput): void {
  const warn = (output: string): void => logger.warn({ part, output }, 'a thread wrote');
  createInterface({ input: worker.stdout }).on('line', (line) => {
    if (line.startsWith('{"level":')) writeLine(logger, line);
    else if (line !== '') warn(line);
  });
  createInterface({ input: worker.stderr }).on('line', (line) => {
    if (line !== '') warn(line);
  });
}
