// The free space on the disk that contains DATA_DIR.

import { statfs } from 'node:fs/promises';

export type DiskSpace = { readonly freeBytes: number; readonly sizeBytes: number };

/** @returns undefined if the folder can't be examined */
export async function diskSpaceOf(folder: string): Promise<DiskSpace | undefined> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    // We use `bavail` because the rest of the free blocks is reserved for root.
    return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
  } catch {
    return undefined;
  }
}
