// Starts and stops the embedded database from the main thread, which manages the database's worker
// and the folder for its socket.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { Logger } from '../../lib/logger.ts';
import { siblingModule, spawnWorker } from '../../lib/threads/worker-threads.ts';
import { within } from '../../lib/within.ts';
import { ensurePgliteFolder } from './pglite-creation.ts';

export type PgliteWorkerData = { readonly folder: string; readonly socketPath: string };

export type PgliteServer = {
  /** The socket's folder. Pass it to `pg` as the host. */
  readonly socketFolder: string;
  readonly worker: Worker;
  close(): Promise<void>;
};

/** `sun_path` holds 104 bytes on macOS and 108 on Linux, including the final zero. */
const maxSocketPathBytes = 100;
/** The socket's name, which `pg` derives from its default port. */
const socketName = '.s.PGSQL.5432';
/**
 * This is plenty of time, because crash recovery reads at most a few segments of the write-ahead
 * log.
 */
const startTimeoutMs = 60_000;
/**
 * A clean stop writes a checkpoint. If it takes longer than this, we terminate the worker. That's
 * like a crash, and doesn't lose anything that was committed.
 */
const stopTimeoutMs = 10_000;

/**
 * Starts the database. `onFatal` is called once if the worker dies without a call to `close`.
 * `logger` receives the worker's output.
 */
export async function startPglite(
  dataDir: string,
  onFatal: (error: Error) => void,
  logger?: Logger,
): Promise<PgliteServer> {
  const folder = folderIn(dataDir);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const socketFolder = await privateSocketFolder(dataDir);
  const socketPath = join(socketFolder, socketName);
  // A killed process leaves its socket behind.
  await rm(socketPath, { force: true });
  await ensurePgliteFolder(folder, socketPath).catch((error: unknown) => {
    throw notStarted(folder, error);
  });
  await rm(socketPath, { force: true });

  const workerData: PgliteWorkerData = { folder, socketPath };
  const worker = spawnWorker(
    siblingModule('./pglite-worker', import.meta.url),
    workerData,
    logger && { logger, part: 'pglite' },
    'calm',
  );
  const exited = new Promise<number>((resolve) => worker.once('exit', resolve));
  let closing = false;
  try {
    await untilReady(worker);
  } catch (error) {
    await worker.terminate();
    await rm(socketFolder, { recursive: true, force: true });
    throw notStarted(folder, error);
  }
  let cause: Error | undefined;
  worker.on('error', (error: Error) => {
    cause = error;
  });
  worker.once('exit', (code) => {
    if (!closing) onFatal(new Error(`the embedded database's worker ended (${code})`, { cause }));
  });
  return {
    socketFolder,
    worker,
    async close() {
      closing = true;
      await stop(worker, exited);
      await rm(socketFolder, { recursive: true, force: true });
    },
  };
}

function notStarted(folder: string, cause: unknown): Error {
  const isInstalled = (cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND';
  return new Error(
    isInstalled
      ? `the embedded database under ${folder} did not start`
      : 'the embedded database is not installed here, as in the container image: set DATABASE_URL',
    { cause },
  );
}

async function untilReady(worker: Worker): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`not ready after ${startTimeoutMs} ms`)),
      startTimeoutMs,
    );
    const settle = (error?: Error): void => {
      clearTimeout(timer);
      worker.off('error', settle);
      worker.off('exit', onExit);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onExit = (code: number): void => settle(new Error(`the worker ended (${code})`));
    worker.once('error', settle);
    worker.once('exit', onExit);
    worker.once('message', () => settle());
  });
}

async function stop(worker: Worker, exited: Promise<number>): Promise<void> {
  worker.postMessage('stop');
  await within(exited, stopTimeoutMs);
  await worker.terminate();
}

/**
 * Returns a folder that only this user may enter. This matters because any program that can connect
 * to the socket is the database's superuser.
 */
async function privateSocketFolder(dataDir: string): Promise<string> {
  const near = join(dataDir, 'pglite-socket');
  if (Buffer.byteLength(join(near, socketName)) <= maxSocketPathBytes) {
    await mkdir(near, { recursive: true, mode: 0o700 });
    return near;
  }
  // The name is derived from the data folder, so that we reuse a killed process's folder. Otherwise
  // such folders would pile up.
  const user = userInfo();
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const far = join(tmpdir(), `offhook-${user.uid}-${name}`);
  await mkdir(far, { recursive: true, mode: 0o700 });
  const found = await lstat(far);
  const isPrivate = found.isDirectory() && found.uid === user.uid && (found.mode & 0o077) === 0;
  if (!isPrivate) throw new Error(`${far} is not a private folder of this user`);
  return far;
}

function folderIn(dataDir: string): string {
  return join(dataDir, 'pglite');
}

/** Returns true if a gateway has ever stored data in this folder. */
export function hasEmbeddedDatabase(dataDir: string): boolean {
  return existsSync(folderIn(dataDir));
}
