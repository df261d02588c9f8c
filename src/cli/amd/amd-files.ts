// Which recordings are meant: files as they are named, and every WAV file in the folders named, however deep.

import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';

/** 5 minutes of 16-bit stereo at 192 kHz, more than is looked at; the rest of a file is not read. */
const mostBytes = 256 * 1_024 * 1_024;

export async function findRecordings(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) found.push(...(await recordingsAt(path)));
  return [...new Set(found)];
}

async function recordingsAt(path: string): Promise<string[]> {
  const what = await stat(path).catch(() => undefined);
  // A file that is not there is told when it is read, like every other that cannot be.
  if (what?.isDirectory() !== true) return [path];
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

/** The file, or in words why not. */
export async function readRecording(path: string): Promise<Buffer | string> {
  try {
    // A pipe or a device would be waited for, or read, for ever.
    const what = await stat(path);
    if (!what.isFile()) return what.isDirectory() ? 'is a folder' : 'is no file';
    await using file = await open(path, 'r');
    const wanted = Math.min(what.size, mostBytes);
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
