// One process for each DATA_DIR: PGlite and the private nats-server would destroy each other's files. The lock is a unix
// socket in the folder, because the kernel lets go of it when its holder dies, however it dies. A pid in a file means nothing in
// another pid namespace, and a time in a file says nothing about a process that is stopped. A socket that has a file is reached
// from every network and pid namespace that has the folder mounted, under whatever path.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeFolder } from '../lib/make-folder.ts';

export type DataDirLock = { release(): Promise<void> };

/** A start of a greater name gives way at once; a process that is still there after this long holds the lock. */
const giveWayMs = 1_000;
const lookAgainMs = 20;
const socketName = /^lock-[0-9a-f]{16}\.sock$/;
/** No /proc, or a folder that cannot hold sockets: what some shared folders of virtual machines answer. */
const noSocketsHere = new Set(['ENOENT', 'EOPNOTSUPP', 'ENOTSUP', 'EPERM', 'ENOSYS']);

/**
 * Each process listens on a socket of its own name and then looks for others. Since each listens before looking, of
 * two that start at once at least one sees the other: the one of the greater name gives way.
 *
 * @throws Error that names the folder, when another process has it. Creates the folder (0700) where it is missing.
 */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  await makeFolder(dataDir);
  const handle = await open(dataDir, 'r');
  // The lock alone must not keep the process running.
  const server = createServer((socket) => socket.destroy()).unref();
  const release = async (): Promise<void> => {
    // Removes the file as well.
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

/** @returns the folder of the socket: `dataDir` itself, or one for it where it cannot hold sockets. */
async function listenNear(
  dataDir: string,
  handle: FileHandle,
  server: Server,
  name: string,
): Promise<string> {
  // The path of a socket is limited to about 100 bytes, that of the folder is not.
  const throughDescriptor = `/proc/self/fd/${handle.fd}`;
  try {
    await listen(server, join(throughDescriptor, name));
    return throughDescriptor;
  } catch (error) {
    if (!noSocketsHere.has(String((error as NodeJS.ErrnoException).code)))
      throw new Error(`the folder ${dataDir} cannot be written to`, { cause: error });
  }
  const { dev, ino } = await handle.stat();
  const elsewhere = join(tmpdir(), `offhook-${dev}-${ino}`);
  await mkdir(elsewhere, { recursive: true, mode: 0o700 });
  await listen(server, join(elsewhere, name));
  return elsewhere;
}

async function listen(server: Server, path: string): Promise<void> {
  // Every user who may enter the folder may ask: a socket left by root must not lock out the user whose folder it is.
  server.listen({ path, readableAll: true, writableAll: true });
  await once(server, 'listening');
}

async function isAlone(folder: string, name: string): Promise<boolean> {
  const deadlineMs = performance.now() + giveWayMs;
  for (;;) {
    const names = (await readdir(folder)).filter((each) => socketName.test(each));
    // Another start may have looked between the bind and the listen of this socket, and removed it as a dead one.
    if (!names.includes(name)) return false;
    const others = names.filter((each) => each !== name);
    const answers = await Promise.all(others.map((other) => isAlive(join(folder, other))));
    const alive = others.filter((_other, index) => answers[index]);
    if (alive.length === 0) {
      // Names are never used twice, so no other process can be hit.
      for (const dead of others) await rm(join(folder, dead), { force: true });
      return true;
    }
    if (alive.some((other) => other < name) || performance.now() > deadlineMs) return false;
    await pause(lookAgainMs);
  }
}

/** Refused: its process is gone. Whatever else comes, e.g. a queue that a stopped process let run full, speaks for one. */
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
