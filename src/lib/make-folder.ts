// A `mkdir -p` that always returns. Node's own version retries forever inside folders in which no
// new folders can be created, e.g. /proc.

import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates the missing folders on the path, accessible only to their owner.
 * @returns the first folder created, or undefined if the path already existed
 */
export async function makeFolder(path: string): Promise<string | undefined> {
  try {
    await mkdir(path, { mode: 0o700 });
    return path;
  } catch (error) {
    if (await isFolder(path)) return undefined;
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
  }
  const first = await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created the folder in the meantime.
    if (!(await isFolder(path))) throw error;
  }
  return first ?? path;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
