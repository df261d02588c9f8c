// Makes sure that only one process uses a DATA_DIR, because two processes would destroy each
// other's PGlite and NATS files. The lock is a unix socket in the folder. The kernel releases the
// socket no matter how its process dies, and it works across network and pid namespaces, wherever
// the folder is mounted. A pid file would be meaningless in another pid namespace, and a timestamp
// couldn't tell a paused process from a dead one.

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
 * If two processes start simultaneously, the one with the greater name gives way immediately. So a
 * process that's still there after this time must own the lock.
 */
const giveWayMs = 1_000;
const lookAgainMs = 20;
const socketName = /^lock-[0-9a-f]{16}\.sock$/;
/**
 * Errors that occur if /proc is missing, or if the folder can't contain sockets, as with some
 * folders that a virtual machine shares with its host.
 */
const noSocketErrors = new Set(['ENOENT', 'EOPNOTSUPP', 'ENOTSUP', 'EPERM', 'ENOSYS']);

/**
 * Locks the folder, and creates it (0700) if necessary. Each process first listens on a socket with
 * a unique name, and only then looks for other sockets. That way, if two processes start
 * simultaneously, at least one of them sees the other. The one with the greater name gives way.
 *
 * @throws Error that names the folder if another process owns the lock
 */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  await makeFolder(dataDir);
  const handle = await open(dataDir, 'r');
  // `unref`, because the lock alone shouldn't keep the process alive.
  const server = createServer((socket) => socket.destroy()).unref();
  const release = async (): Promise<void> => {
    // This also removes the socket's file.
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
 * @returns the folder for the socket, i.e. `dataDir` itself, or a folder in the temporary directory
 * if `dataDir` can't contain sockets
 */
async function listenNear(
  dataDir: string,
  handle: FileHandle,
  server: Server,
  name: string,
): Promise<string> {
  // The path of a socket is limited to about 100 bytes, and the folder's own path may already be
  // longer.
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
  // Anyone who may enter the folder is allowed to connect. Otherwise, a socket that root has left
  // behind would lock out the folder's owner.
  server.listen({ path, readableAll: true, writableAll: true });
  await once(server, 'listening');
}

async function isAlone(folder: string, name: string): Promise<boolean> {
  const deadlineMs = performance.now() + giveWayMs;
  for (;;) {
    const names = (await readdir(folder)).filter((each) => socketName.test(each));
    // Another process may have looked between our bind and our listen. It would then have assumed
    // that our socket was dead, and removed it.
    if (!names.includes(name)) return false;
    const others = names.filter((each) => each !== name);
    const answers = await Promise.all(others.map((other) => isAlive(join(folder, other))));
    const alive = others.filter((_other, index) => answers[index]);
    if (alive.length === 0) {
      // Names aren't reused, so this can't remove the socket of a live process.
      for (const dead of others) await rm(join(folder, dead), { force: true });
      return true;
    }
    if (alive.some((other) => other < name) || performance.now() > deadlineMs) return false;
    await pause(lookAgainMs);
  }
}

/**
 * Returns false if the process is gone, which we can tell because the connection is refused or the
 * file is missing. After any other error the process may still be alive, e.g. paused with a full
 * backlog.
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
