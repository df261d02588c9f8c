// Stores recordings in a folder. A file gets its name only after it has reached the disk.

import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import type { Done, FolderTarget, RecordingStore, StoreFault } from './recording-store.ts';
import { probeName, transferTimeoutMs } from './store-bounds.ts';

export function openFolderStore({ path: root }: FolderTarget): RecordingStore {
  const pathOf = (name: string): string => {
    const path = join(root, name);
    if (relative(root, path).startsWith('..')) throw new Error('the name leaves the folder');
    return path;
  };
  return {
    put: (name, path) => attempt(() => copy(path, pathOf(name))),
    async read(name, range) {
      try {
        const { size } = await stat(pathOf(name));
        const content = createReadStream(pathOf(name), range ?? {});
        const bytes = range === undefined ? size : range.end - range.start + 1;
        return { kind: 'found', content, bytes };
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return { kind: 'missing' };
        return { kind: 'failed', fault: faultOf(error) };
      }
    },
    remove: (name) =>
      attempt(async () => {
        await rm(pathOf(name), { force: true });
        await removeEmptyFolders(root, dirname(pathOf(name)));
      }),
    check: () =>
      attempt(async () => {
        await mkdir(root, { recursive: true, mode: 0o700 });
        const probe = join(root, probeName());
        try {
          // A whole block, because fewer bytes may still fit on a full disk.
          await writeFile(probe, Buffer.alloc(4_096), { mode: 0o600, flush: true });
        } finally {
          await rm(probe, { force: true });
        }
      }),
    locationOf: (name) => pathToFileURL(pathOf(name)).href,
    close: () => Promise.resolve(),
  };
}

/** Only the gateway's user may read recordings. */
async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  const part = `${to}.${randomUUID().slice(0, 8)}.part`;
  const { size } = await stat(from);
  try {
    await pipeline(createReadStream(from), createWriteStream(part, { mode: 0o600, flush: true }), {
      signal: AbortSignal.timeout(transferTimeoutMs(size)),
    });
    await rename(part, to);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(to));
}

/** Without this, a power cut may undo the rename. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Removes the folders of days and accounts that have no recordings any more. */
async function removeEmptyFolders(root: string, folder: string): Promise<void> {
  for (let path = folder; path !== root && path.startsWith(root); path = dirname(path)) {
    try {
      await rmdir(path);
    } catch {
      return;
    }
  }
}

async function attempt(work: () => Promise<void>): Promise<Done> {
  try {
    await work();
    return { ok: true };
  } catch (error) {
    return { ok: false, fault: faultOf(error) };
  }
}

const refusals = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'];
const fullCodes = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** @throws the error, if it's not about files: then it is a mistake of ours */
function faultOf(error: unknown): StoreFault {
  const code = codeOf(error);
  if (error instanceof Error && error.name === 'AbortError') {
    return { kind: 'slow', code: 'timeout', detail: 'the folder did not take the file in time' };
  }
  if (code === undefined) throw new Error('the folder of recordings', { cause: error });
  if (fullCodes.includes(code)) return { kind: 'full', code, detail: `the disk is full (${code})` };
  if (refusals.includes(code)) {
    return { kind: 'refused', code, detail: `the folder cannot be written (${code})` };
  }
  return { kind: 'unreachable', code, detail: `the folder cannot be used (${code})` };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}
