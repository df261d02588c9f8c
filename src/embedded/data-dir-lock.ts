// One process for each DATA_DIR: PGlite and the private nats-server would destroy each other's files. The lock is a unix
// socket, because the kernel lets go of it when its holder dies, however it dies; a pid in a file would have to be guessed at.

import { createHash } from 'node:crypto';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type DataDirLock = { release(): Promise<void> };

/** @throws Error that names the folder, when another process has it. Creates the folder (0700) where it is missing. */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const address = lockAddress(await realpath(dataDir));
  const server = (await listen(address)) ?? (await takeOver(address, dataDir));
  // The lock alone must not keep the process running.
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** Linux has sockets without a file, which cannot be left behind; elsewhere a file of a short name stands in. */
function lockAddress(dataDir: string): string {
  const name = `offhook-${createHash('sha256').update(dataDir).digest('hex').slice(0, 32)}`;
  return process.platform === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`);
}

/** Undefined: the address is taken. */
function listen(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(address, () => resolve(server));
  });
}

async function takeOver(address: string, dataDir: string): Promise<Server> {
  if (!(await isAnswered(address))) {
    // A file that its holder left behind; only where sockets have files.
    await rm(address, { force: true });
    const server = await listen(address);
    if (server !== undefined) return server;
  }
  throw new Error(
    `${dataDir} is in use by another Offhook process; end it, or set another DATA_DIR`,
  );
}

function isAnswered(address: string): Promise<boolean> {
  if (address.startsWith('\0')) return Promise.resolve(true);
  return new Promise((resolve) => {
    const socket = createConnection(address, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
