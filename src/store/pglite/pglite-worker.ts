// Worker thread that runs PGlite (PostgreSQL as WebAssembly) behind a private unix socket that
// speaks PostgreSQL's protocol. In the main thread, PGlite's synchronous file and WebAssembly work
// would block every call.

import { setFlagsFromString } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { collectGarbage } from '../../lib/threads/heap-growth.ts';
import { startParameters } from './pglite-parameters.ts';
import type { PgliteWorkerData } from './pglite-server.ts';

const { folder, socketPath } = workerData as PgliteWorkerData;

/**
 * After a function of PostgreSQL has executed about this many bytes of code, V8 compiles it again
 * with the optimizing compiler. V8's default is a tenth of this. A third of a start's CPU time then
 * went into optimising code that runs only during the start.
 */
const tieringBudget = 18_000_000;
setFlagsFromString(`--wasm-tiering-budget=${tieringBudget}`);

const database = await PGlite.create({ dataDir: folder, startParams: startParameters });

// An SQL error is a regular protocol response and never throws here. An exception means that the
// database is broken (e.g. WebAssembly trap, disk full). pglite-socket would then leave every later
// query waiting forever, so we end the thread.
const execute = database.execProtocolRawStream.bind(database);
database.execProtocolRawStream = async (message, options) => {
  try {
    await execute(message, options);
  } catch (error) {
    endThread('PGlite failed', error);
    throw error;
  }
};

// PGlite has one session that all connections share, and pglite-socket (0.2.17) switches
// connections after every protocol message. Two connections could mix up their Parse and Bind
// messages, so the pool only has one. The other slots are for connections that are still closing,
// because `pg` replaces its connection after each error.
const server = new PGLiteSocketServer({ db: database, path: socketPath, maxConnections: 20 });
await server.start();
// The program's 9 MB, which PGlite has read from its file, are garbage once they are compiled.
collectGarbage();

const port = parentPort;
port?.once('message', () => {
  server
    .stop()
    .then(() => database.close())
    .finally(() => port.close())
    .catch((error: unknown) => endThread('PGlite did not close', error));
});
port?.postMessage('ready');

/** Throws outside of any `catch` so that the thread ends and its parent gets the error. */
function endThread(message: string, cause: unknown): void {
  setImmediate(() => {
    throw new Error(message, { cause });
  });
}
