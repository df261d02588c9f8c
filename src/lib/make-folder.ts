// `mkdir -p` that ends: Node's own tries for ever where a folder that is there takes no others (/proc, for one).

import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes what is missing of the path, for its owner only. Returns the first folder that was made, if any. */
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
    // Another process made it meanwhile.
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
