// Worker threads from built JavaScript or, in development and tests, straight from the TypeScript source.

import { Worker, type WorkerOptions } from 'node:worker_threads';
import { isGenerous } from './heap-growth.ts';
import { relayOutput, type ThreadOutput } from './thread-output.ts';

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
