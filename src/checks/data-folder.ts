// DATA_DIR: can it be made, and written to? And is there room?

import { open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../lib/make-folder.ts';
import { type Check, type Finding, failed, ok, warning } from './check.ts';
import { reasonOf } from './reasons.ts';

const mebibyte = 1_024 * 1_024;
/** PGlite makes 40 MB of files, and as much again of its log; the streams begin small. */
const neededMiB = { first: 150, later: 30 } as const;
/** Times what is needed: streams and the database grow. */
const comfortable = 7;
/** A block: less may fit into what a full disk still has. */
const probe = Buffer.alloc(4_096);

/** Writes into the folder, where it is missing into one that is removed again unless it is to stay. */
export function dataFolderCheck(dataDir: string, options: { readonly keep: boolean }): Check {
  const run = async (): Promise<Finding> => {
    let made: string | undefined;
    try {
      made = await makeFolder(dataDir);
    } catch (error) {
      return failed(`DATA_DIR: ${dataDir} cannot be made: ${reasonOfMaking(error)}`);
    }
    try {
      await writeAndRemove(join(dataDir, `probe-${process.pid}`));
      return ok(
        made === undefined || options.keep
          ? `${dataDir} can be written`
          : `${dataDir} is not there yet, and can be made`,
      );
    } catch (error) {
      return failed(`DATA_DIR: ${dataDir} cannot be written: ${reasonOf(error)}`);
    } finally {
      if (made !== undefined && !options.keep) await rm(made, { recursive: true, force: true });
    }
  };
  return { name: 'data folder', run };
}

/** `embedded`: a database or a nats-server of ours will fill it. */
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
      `DATA_DIR: the disk of ${dataDir} has ${free} left, and ${wantedMiB} MiB are needed`,
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
      // A disk that lies keeps it to itself until then.
      await file.sync();
    } finally {
      await file.close();
    }
  } finally {
    await rm(path, { force: true });
  }
}

/** There is a folder, and it takes none. */
function reasonOfMaking(error: unknown): string {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? 'the file system there takes no folders (ENOENT)'
    : reasonOf(error);
}
