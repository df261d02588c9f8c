// Copies an embedded database's folder, five times as fast as `cp` from node:fs.

import { copyFile, mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Matches the names of PostgreSQL's write-ahead log segments. A segment is 16 MB, most of which is
 * unused in a new database.
 */
const logSegment = /^[0-9A-F]{24}$/;
const blockBytes = 8_192;
const emptyBlock = Buffer.alloc(blockBytes);

export async function copyDatabaseFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: (await stat(from)).mode });
  const entries = await readdir(from, { withFileTypes: true });
  await Promise.all(
    entries.map(async (entry) => {
      const [source, target] = [join(from, entry.name), join(to, entry.name)];
      if (entry.isDirectory()) await copyDatabaseFolder(source, target);
      else if (logSegment.test(entry.name)) await copyWritten(source, target);
      else await copyFile(source, target);
    }),
  );
}

/**
 * Copies a segment up to its last non-empty block. The rest becomes a hole, which reads as zeros.
 */
async function copyWritten(from: string, to: string): Promise<void> {
  const bytes = await readFile(from);
  let end = bytes.length;
  while (end > 0 && bytes.subarray(end - blockBytes, end).equals(emptyBlock)) end -= blockBytes;
  await writeFile(to, bytes.subarray(0, end));
  await truncate(to, bytes.length);
}
