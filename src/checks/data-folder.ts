// Checks that DATA_DIR can be created and is writable, and that its disk has enough space.

import { open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../lib/make-folder.ts';
import { type Check, type Finding, failed, ok, warning } from './check.ts';
import { reasonOf } from './reasons.ts';

const mebibyte = 1_024 * 1_024;
/**
 * Free space that Offhook needs before and after creating its database. PGlite creates 40 MB of
 * files and a log of the same size. The NATS streams are small at first.
 */
const neededMiB = { first: 150, later: 30 } as const;
/**
 * We warn if there is less free space than this multiple of what Offhook needs, because the streams
 * and the database grow.
 */
const comfortable = 7;
/** We write a whole block, because fewer bytes may still fit on a full disk. */
const probe = Buffer.alloc(4_096);

/**
 * Checks that the folder is writable. If the folder is missing, creates it and then removes it
 * again unless `keep` is set.
 */
export function dataFolderCheck(dataDir: string, options: { readonly keep: boolean }): Check {
  const run = async (): Promise<Finding> => {
    let made: string | undefined;
    try {
      made = await makeFolder(dataDir);
    } catch (error) {
      return failed(`DATA_DIR: ${dataDir} cannot be created: ${reasonNotCreated(error)}`);
    }
    try {
      await writeAndRemove(join(dataDir, `probe-${process.pid}`));
      return ok(
        made === undefined || options.keep
          ? `${dataDir} is writable`
          : `${dataDir} does not exist yet, and can be created`,
      );
    } catch (error) {
      return failed(`DATA_DIR: ${dataDir} cannot be written: ${reasonOf(error)}`);
    } finally {
      if (made !== undefined && !options.keep) await rm(made, { recursive: true, force: true });
    }
  };
  return { name: 'data folder', run };
}

/**
 * Checks the free space. Set `embedded` if the embedded database or nats-server keeps its data in
 * the folder.
 */
export function diskCheck(dataDir: string, options: { readonly embedded: boolean }): Check {
  const run = async (): Promise<Finding> => {
    const { bavail, bsize } = await statfs(await nearestFolder(dataDir));
    const freeMiB = Math.floor((bavail * bsize) / mebibyte);
    return judgeSpace(freeMiB, options.embedded ? await needed(dataDir) : 1, dataDir);
  };
  return { name: 'disk', run };
}

export function judgeSpace(freeMiB: number, wantedMiB: number, dataDir: string): Finding {
  const free = freeMiB < 10_240 ? `${freeMiB} MiB` : `${Math.floor(freeMiB / 1_024)} GiB`;
  if (freeMiB < wantedMiB) {
    return failed(
      `DATA_DIR: the disk of ${dataDir} has ${free} left, but Offhook needs ${wantedMiB} MiB`,
    );
  }
  return freeMiB < comfortable * wantedMiB ? warning(`${free} left`) : ok(`${free} left`);
}

async function needed(dataDir: string): Promise<number> {
  const hasDatabase = await readdir(join(dataDir, 'pglite')).then(
    (names) => names.length > 0,
    () => false,
  );
  return hasDatabase ? neededMiB.later : neededMiB.first;
}

async function nearestFolder(path: string): Promise<string> {
  const isThere = await stat(path).then(
    () => true,
    () => false,
  );
  return isThere || dirname(path) === path ? path : await nearestFolder(dirname(path));
}

async function writeAndRemove(path: string): Promise<void> {
  try {
    const file = await open(path, 'w', 0o600);
    try {
      await file.write(probe);
      // Some disks don't report errors until this point.
      await file.sync();
    } finally {
      await file.close();
    }
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * Describes why a folder couldn't be created. Note that ENOENT here means that the parent exists,
 * but is on a file system that can't contain folders.
 */
function reasonNotCreated(error: unknown): string {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? 'the file system accepts no folders there (ENOENT)'
    : reasonOf(error);
}
