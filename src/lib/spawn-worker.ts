// Worker threads from built JavaScript or, in development and tests, straight from the TypeScript source.

import { Worker } from 'node:worker_threads';

/** `url`: `new URL('./media-worker.ts', import.meta.url)`, written with the extension of the file that runs (see `siblingModule`). */
export function spawnWorker(url: URL, workerData: unknown): Worker {
  // Node 20 cannot read TypeScript; the built package never gets here with a .ts file.
  const execArgv = url.pathname.endsWith('.ts') ? ['--import', import.meta.resolve('tsx')] : [];
  return new Worker(url, { workerData, execArgv });
}

/** A module beside the caller: `.ts` where the caller runs as source, `.js` where it was built. */
export function siblingModule(name: string, callerUrl: string): URL {
  return new URL(`${name}${callerUrl.endsWith('.ts') ? '.ts' : '.js'}`, callerUrl);
}
