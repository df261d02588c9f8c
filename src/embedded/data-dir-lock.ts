// One process for each DATA_DIR: PGlite and the private nats-server would destroy each other's files. The lock is a unix
// socket in the folder, because the kernel lets go of it when its holder dies, however it dies; a pid in a file would have
// to be guessed at. A socket that has a file is reached from every network and pid namespace that has the folder mounted,
// under whatever path; an abstract one belongs to one network namespace, and a name made of the path is not the folder's.

import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeFolder } from '../lib/make-folder.ts';

export type DataDirLock = { release(): Promise<void> };

/** A start that finds this one's socket gives way at once; who has not after this long holds the lock. */
const giveWayMs = 1_000;
const lookAgainMs = 20;
const socketName = /^lock-[0-9a-f]{16}\.sock$/;
/** Folders that cannot hold sockets: what some shared folders of virtual machines answer. */
const noSocketsHere = new Set(['EOPNOTSUPP', 'ENOTSUP', 'EPERM', 'ENOSYS']);

/**
 * Each process listens on a socket of its own name and then looks for others. Since each listens before looking, of
 * two that start at once at least one sees the other: the one of the greater name gives way.
 *
 * @throws Error that names the folder, when another process has it. Creates the folder (0700) where it is missing.
 */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  await makeFolder(dataDir);
  const { folder, name, server, handle } = await openSocket(dataDir);
  const release = async (): Promise<void> => {
    // Removes the file as well.
    await new Promise((resolve) => server.close(resolve));
    await handle?.close();
  };
  try {
    await untilAlone(folder, name, dataDir);
  } catch (error) {
    await release();
    throw error;
  }
  return { release };
}

async function openSocket(dataDir: string) {
  const name = `lock-${randomBytes(8).toString('hex')}.sock`;
  const place = process.platform === 'linux' ? await throughDescriptor(dataDir) : undefined;
  if (place !== undefined) {
    try {
      return { ...place, name, server: await listen(join(place.folder, name)) };
    } catch (error) {
      await place.handle.close();
      if (!noSocketsHere.has(String((error as NodeJS.ErrnoException).code))) {
        throw new Error(`the folder ${dataDir} cannot be written to`, { cause: error });
      }
    }
  }
  const { dev, ino } = await stat(dataDir);
  const folder = join(tmpdir(), `offhook-${dev}-${ino}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return { folder, name, server: await listen(join(folder, name)), handle: undefined };
}

/** The path of a socket is limited to about 100 bytes, that of the folder is not. */
async function throughDescriptor(dataDir: string) {
  const handle = await open(dataDir, 'r');
  return { folder: `/proc/self/fd/${handle.fd}`, handle };
}

async function listen(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // Every user who may enter the folder may ask: a socket left by root must not lock out the user whose folder it is.
    server.listen({ path, readableAll: true, writableAll: true }, resolve);
  });
  // The lock alone must not keep the process running.
  server.unref();
  return server;
}

async function untilAlone(folder: string, name: string, dataDir: string): Promise<void> {
  const deadlineMs = performance.now() + giveWayMs;
  for (;;) {
    const { alive, dead } = await othersIn(folder, name);
    if (alive.length === 0) {
      // Names are never used twice, so no other process can be hit.
      for (const other of dead) await rm(join(folder, other), { force: true });
      return await mustBeThere(folder, name, dataDir);
    }
    if (alive.some((other) => other < name) || performance.now() > deadlineMs) {
      throw inUse(dataDir);
    }
    await pause(lookAgainMs);
  }
}

/** Another start may have come by between the making of this socket and its first listening, and taken it for a dead one. */
async function mustBeThere(folder: string, name: string, dataDir: string): Promise<void> {
  if (!(await readdir(folder)).includes(name)) throw inUse(dataDir);
}

function inUse(dataDir: string): Error {
  return new Error(
    `${dataDir} is in use by another Offhook process; end it, or set another DATA_DIR`,
  );
}

async function othersIn(folder: string, name: string) {
  const others = (await readdir(folder)).filter((each) => socketName.test(each) && each !== name);
  const alive: string[] = [];
  const dead: string[] = [];
  for (const other of others) {
    ((await isAnswered(join(folder, other))) ? alive : dead).push(other);
  }
  return { alive, dead };
}

/** Refused: its process is gone. Whatever else comes, e.g. a queue that a stopped process let run full, speaks for one. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT');
    });
  });
}
