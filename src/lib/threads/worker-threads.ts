// Starts worker threads from the built JavaScript or, in development and tests, straight from the
// TypeScript source.

import { createInterface } from 'node:readline';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { type Logger, writeLine } from '../logger.ts';
import { isGenerous } from './heap-growth.ts';

/**
 * Heap limits for short-lived objects. On a machine with plenty of memory, V8 would allow 48 MB per
 * thread. A media worker that reads thousands of packets a second fills what it may. In a thread
 * that does little, the memory only stays resident.
 */
const maxYoungGenerationSizeMb = { busy: 24, calm: 6 } as const;

/**
 * Starts a worker thread.
 *
 * @param url the thread's module, e.g. from `siblingModule`
 * @param output where to log the thread's output. By default, the output goes straight to the
 *   process's own output.
 * @param pace how many short-lived objects the thread makes
 */
export function spawnWorker(
  url: URL,
  workerData: unknown,
  output?: ThreadOutput,
  pace: keyof typeof maxYoungGenerationSizeMb = 'busy',
): Worker {
  const relayed = output !== undefined;
  const worker = startWorker(url, {
    ...{ workerData, stdout: relayed, stderr: relayed },
    ...(isGenerous()
      ? { resourceLimits: { maxYoungGenerationSizeMb: maxYoungGenerationSizeMb[pace] } }
      : {}),
  });
  if (relayed) relayOutput(worker, output);
  return worker;
}

function startWorker(url: URL, options: WorkerOptions): Worker {
  if (!url.pathname.endsWith('.ts')) return new Worker(url, options);
  // Node 20 can't read TypeScript, and its loader hooks don't apply to a worker's entry file. So we
  // need a bootstrap that registers tsx first.
  const loader = import.meta.resolve('tsx/esm/api');
  const bootstrap = `import(${JSON.stringify(loader)}).then(({ register }) => {
    register();
    return import(${JSON.stringify(url.href)});
  });`;
  return new Worker(bootstrap, { ...options, eval: true });
}

/**
 * Returns the URL of a module in the caller's folder, with `.ts` if the caller runs from source and
 * `.js` if it has been built.
 */
export function siblingModule(name: string, callerUrl: string): URL {
  return new URL(`${name}${callerUrl.endsWith('.ts') ? '.ts' : '.js'}`, callerUrl);
}

type ThreadOutput = {
  readonly logger: Logger;
  /** One word that names the thread's job. */
  readonly part: string;
};

/**
 * Relays a worker thread's output. The thread's logger writes JSON lines to its standard output,
 * which we pass on unchanged. Anything else, such as a WebAssembly crash or a library's warning, is
 * logged as a warning.
 *
 * The worker must have been started with `stdout: true` and `stderr: true`.
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
