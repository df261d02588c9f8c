// Allows one process per DATA_DIR: two would destroy each other's PGlite and NATS files. The lock
// is a unix socket in the folder, because the kernel releases it when its holder dies, however it
// dies. A pid in a file means nothing in another pid namespace. A time in a file says nothing about
// a process that is stopped. A socket with a file can be reached from every network and pid
// namespace that has the folder mounted, under whatever path.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeFolder } from '../lib/make-folder.ts';

export type DataDirLock = { release(): Promise<void> };

/**
 * A starting process with a greater name gives way at once. A process that is still there after
 * this time holds the lock.
 */
const giveWayMs = 1_000;
const lookAgainMs = 20;
const socketName = /^lock-[0-9a-f]{16}\.sock$/;
/**
 * Errors that mean: there is no /proc, or the folder cannot hold sockets. Some folders that virtual
 * machines share with their host cannot.
 */
const noSocketErrors = new Set(['ENOENT', 'EOPNOTSUPP', 'ENOTSUP', 'EPERM', 'ENOSYS']);

/**
 * Locks the folder. Creates it (0700) if it is missing. Each process listens on a socket with a
 * name of its own and then looks for other sockets. Because each listens before it looks, at least
 * one of two simultaneous starts sees the other. The one with the greater name gives way.
 *
 * @throws Error that names the folder if another process holds the lock
 */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  await makeFolder(dataDir);
  const handle = await open(dataDir, 'r');
  // The lock alone must not keep the process running.
  const server = createServer((socket) => socket.destroy()).unref();
  const release = async (): Promise<void> => {
    // Closing also removes the socket's file.
    await new Promise((resolve) => server.close(resolve));
    await handle.close();
  };
  try {
    const name = `lock-${randomBytes(8).toString('hex')}.sock`;
    const folder = await listenNear(dataDir, handle, server, name);
    if (!(await isAlone(folder, name))) {
      throw new Error(
        `${dataDir} is in use by another Offhook process; end it, or set another DATA_DIR`,
      );
    }
  } catch (error) {
    await release();
    throw error;
  }
  return { release };
}

/**
 * @returns the folder of the socket: `dataDir` itself, or a folder in the temporary directory if
 * `dataDir` cannot hold sockets.
 */
async function listenNear(
  dataDir: string,
  handle: FileHandle,
  server: Server,
  name: string,
): Promise<string> {
  // The path of a socket is limited to about 100 bytes. The path of the folder is not.
  const throughDescriptor = `/proc/self/fd/${handle.fd}`;
  try {
    await listen(server, join(throughDescriptor, name));
    return throughDescriptor;
  } catch (error) {
    if (!noSocketErrors.has(String((error as NodeJS.ErrnoException).code)))
      throw new Error(`the folder ${dataDir} cannot be written to`, { cause: error });
  }
  const { dev, ino } = await handle.stat();
  const elsewhere = join(tmpdir(), `offhook-${dev}-${ino}`);
  await mkdir(elsewhere, { recursive: true, mode: 0o700 });
  await listen(server, join(elsewhere, name));
  return elsewhere;
}

async function listen(server: Server, path: string): Promise<void> {
  // Every user who may enter the folder may connect. Otherwise a socket left by root would lock out
  // the user who owns the folder.
  server.listen({ path, readableAll: true, writableAll: true });
  await once(server, 'listening');
}

async function isAlone(folder: string, name: string): Promise<boolean> {
  const deadlineMs = performance.now() + giveWayMs;
  for (;;) {
    const names = (await readdir(folder)).filter((each) => socketName.test(each));
    // Another start may have looked between this socket's bind and listen, taken it for a dead one,
    // and removed it.
    if (!names.includes(name)) return false;
    const others = names.filter((each) => each !== name);
    const answers = await Promise.all(others.map((other) => isAlive(join(folder, other))));
    const alive = others.filter((_other, index) => answers[index]);
    if (alive.length === 0) {
      // Names are never used twice, so this cannot remove the socket of a live process.
      for (const dead of others) await rm(join(folder, dead), { force: true });
      return true;
    }
    if (alive.some((other) => other < name) || performance.now() > deadlineMs) return false;
    await pause(lookAgainMs);
  }
}

/**
 * A refused connection or a missing file means that the process is gone. Any other error counts as
 * alive, e.g. the full backlog of a stopped process.
 */
async function isAlive(path: string): Promise<boolean> {
  const socket = createConnection(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ECONNREFUSED' && code !== 'ENOENT';
  } finally {
    socket.destroy();
  }
}
