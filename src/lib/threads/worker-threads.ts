// Worker threads from built JavaScript or, in development and tests, straight from the TypeScript source.

import { createInterface } from 'node:readline';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { type Logger, writeLine } from '../logger.ts';
import { isGenerous } from './heap-growth.ts';

/** Of short-lived objects: where there is much memory V8 would let each thread have 48 MB, and a media worker that reads thousands of packets a second fills them. */
const maxYoungGenerationSizeMb = 24;

/** `url`: `new URL('./media-worker.ts', import.meta.url)`, written with the extension of the file that runs (see `siblingModule`). `output`: left out, it writes where the process does. */
export function spawnWorker(url: URL, workerData: unknown, output?: ThreadOutput): Worker {
  const relayed = output !== undefined;
  const worker = startWorker(url, {
    ...{ workerData, stdout: relayed, stderr: relayed },
    ...(isGenerous() ? { resourceLimits: { maxYoungGenerationSizeMb } } : {}),
  });
  if (relayed) relayOutput(worker, output);
  return worker;
}

function startWorker(url: URL, options: WorkerOptions): Worker {
  if (!url.pathname.endsWith('.ts')) return new Worker(url, options);
  // Node 20 cannot read TypeScript, and its loader hooks do not reach a worker's own entry file: register tsx first.
  const loader = import.meta.resolve('tsx/esm/api');
  const bootstrap = `import(${JSON.stringify(loader)}).then(({ register }) => {
    register();
    return import(${JSON.stringify(url.href)});
  });`;
  return new Worker(bootstrap, { ...options, eval: true });
}

/** A module beside the caller: `.ts` where the caller runs as source, `.js` where it was built. */
export function siblingModule(name: string, callerUrl: string): URL {
  return new URL(`${name}${callerUrl.endsWith('.ts') ? '.ts' : '.js'}`, callerUrl);
}

type ThreadOutput = {
  readonly logger: Logger;
  /** What the thread is, in a word. */
  readonly part: string;
};

/**
 * Passes on what a worker thread writes. It cannot share the logger of the process: its own one writes JSON lines to the thread's
 * standard output, which are passed on as they are. Anything else (WebAssembly on its way down, a warning of a library) becomes a
 * line of the log.
 *
 * The thread must have been started with `stdout` and `stderr`.
 */
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
