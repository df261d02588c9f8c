// Measures the spool, for the metrics.

import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A few files for each of ten thousand recordings. Beyond that, the size is a lower bound. */
const maxFiles = 50_000;

/** @returns the size of the files in the folder. 0 if there is no such folder */
export async function spoolBytes(folder: string): Promise<number> {
  let bytes = 0;
  let files = 0;
  try {
    for await (const entry of await opendir(folder, { recursive: true })) {
      if (!entry.isFile()) continue;
      files += 1;
      if (files > maxFiles) break;
      // A recording may be removed while we look.
      bytes += await stat(join(entry.parentPath, entry.name)).then(
        ({ size }) => size,
        () => 0,
      );
    }
  } catch {
    return bytes;
  }
  return bytes;
}
