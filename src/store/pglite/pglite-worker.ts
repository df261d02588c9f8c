// Worker thread: PGlite (PostgreSQL as WebAssembly) behind a private unix socket that speaks PostgreSQL's protocol. In the
// main thread its synchronous file and WebAssembly work would block every call.

import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { startParameters } from './pglite-parameters.ts';
import type { PgliteWorkerData } from './pglite-server.ts';

const { folder, socketPath } = workerData as PgliteWorkerData;

const database = await PGlite.create({ dataDir: folder, startParams: startParameters });

// An SQL error is an answer of the protocol and never comes here. What throws is a broken database (WebAssembly trap, disk
// full), after which pglite-socket would leave every later query waiting for ever: the thread dies of it instead.
const execute = database.execProtocolRawStream.bind(database);
database.execProtocolRawStream = async (message, options) => {
  try {
    await execute(message, options);
  } catch (error) {
    endThread('PGlite failed', error);
    throw error;
  }
};

// PGlite is one session: all connections share it, and pglite-socket takes turns between single protocol messages (0.2.17).
// Two connections could put their Parse and Bind into each other's statements, so the pool has one. The other places are for
// those that are still closing: `pg` replaces a connection after each error.
const server = new PGLiteSocketServer({ db: database, path: socketPath, maxConnections: 20 });
await server.start();

const port = parentPort;
port?.once('message', () => {
  server
    .stop()
    .then(() => database.close())
    .finally(() => port.close())
    .catch((error: unknown) => endThread('PGlite did not close', error));
});
port?.postMessage('ready');

/** Thrown where nobody catches it: the thread that started this one is told. */
function endThread(message: string, cause: unknown): void {
  setImmediate(() => {
    throw new Error(message, { cause });
  });
}
