// Small file systems that a test can fill, so that a server's disk is really full. Mounting one
// needs root.

import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** The servers of a storm need a tenth of this. */
const megabytes = 400;
const piece = Buffer.alloc(1_000_000, 1);

export type SmallDisk = {
  readonly folder: string;
  /** Fills the disk to its last byte. */
  fill(): Promise<void>;
  /** Removes what `fill` wrote. */
  empty(): Promise<void>;
  remove(): Promise<void>;
};

/** @returns undefined if this process may not mount file systems */
export async function mountSmallDisk(): Promise<SmallDisk | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-test-disk-'));
  const options = `size=${megabytes}m,mode=0777`;
  try {
    await run('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
  } catch {
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
  let isMounted = true;
  const unmount = (): void => {
    if (isMounted) execFileSync('umount', ['--lazy', folder], { stdio: 'ignore' });
    isMounted = false;
  };
  process.once('exit', unmount);
  // Without a handler, the process would end without the event `exit`.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  const filler = join(folder, 'filler');
  return {
    folder,
    fill: async () => {
      const file = await open(filler, 'w');
      try {
        for (let left = piece.length; left > 0; left = left >> 1) await append(file, left);
      } finally {
        await file.close();
      }
    },
    empty: () => rm(filler, { force: true }),
    remove: async () => {
      process.off('exit', unmount);
      unmount();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Writes pieces of this size until the disk has no space for another one. */
async function append(file: Awaited<ReturnType<typeof open>>, size: number): Promise<void> {
  for (let count = 0; count < 2 * megabytes; count += 1) {
    try {
      await file.write(piece, 0, size);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return;
      throw error;
    }
  }
}
