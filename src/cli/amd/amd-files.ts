// Finds the recordings to analyse. These are all named files, and all WAV files at any depth in the
// named folders.

import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';

/**
 * This is enough for 5 minutes of 16-bit stereo at 192 kHz, which is more than detection needs. We
 * don't read the rest of a file.
 */
const maxBytes = 256 * 1_024 * 1_024;

export async function findRecordings(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) found.push(...(await recordingsAt(path)));
  return [...new Set(found)];
}

async function recordingsAt(path: string): Promise<string[]> {
  const stats = await stat(path).catch(() => undefined);
  // A missing file is reported later, like any other unreadable file.
  if (stats?.isDirectory() !== true) return [path];
  const names = await readdir(path, { recursive: true, encoding: 'utf8' }).catch(
    (error: unknown) => {
      throw new CliError(`${path} cannot be listed`, { cause: error });
    },
  );
  return names
    .filter((name) => /\.wave?$/i.test(name))
    .sort()
    .map((name) => join(path, name));
}

/** Returns the recording's bytes, or a message that says why it can't be read. */
export async function readRecording(path: string): Promise<Buffer | string> {
  try {
    // Reading from a pipe or a device might never end.
    const stats = await stat(path);
    if (!stats.isFile()) return stats.isDirectory() ? 'is a folder' : 'is not a file';
    await using file = await open(path, 'r');
    const wanted = Math.min(stats.size, maxBytes);
    const buffer = Buffer.alloc(wanted);
    let length = 0;
    while (length < wanted) {
      const { bytesRead } = await file.read(buffer, length, wanted - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.subarray(0, length);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    return reasons[code] ?? `cannot be read (${code || String(error)})`;
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  ENAMETOOLONG: 'no such file',
};
