// Debian packages of recordings, unpacked into the cache (never installed), with their copyright
// files beside them.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openArchives } from './archives.ts';

/**
 * @returns the folder that holds the package's `usr`, or undefined if neither Debian nor the
 * network provides the package
 */
export function unpacked(cache: string, name: string): string | undefined {
  const folder = join(cache, 'packages', name);
  if (existsSync(join(folder, 'usr'))) return folder;
  const downloads = join(cache, 'downloads');
  mkdirSync(downloads, { recursive: true });
  try {
    // apt warns that it runs as another user in a folder of this user. The warning is harmless.
    execFileSync('apt-get', ['-q', 'download', name], { cwd: downloads, stdio: 'ignore' });
    const file = readdirSync(downloads).find((candidate) => candidate.startsWith(`${name}_`));
    if (file === undefined) return undefined;
    // The folder appears complete or not at all. The next run repeats an interrupted unpacking.
    const part = `${folder}.part`;
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part, { recursive: true });
    execFileSync('dpkg-deb', ['-x', join(downloads, file), part]);
    openArchives(part);
    renameSync(part, folder);
    return folder;
  } catch {
    return undefined;
  }
}

export function isInstalled(command: string): boolean {
  try {
    execFileSync('which', [command], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Returns every recording in a folder whose path matches, in the same order on every machine. */
export function soundsIn(folder: string | undefined, wanted: RegExp): string[] {
  if (folder === undefined) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(wav|ogg|oga|gsm|mp3)$/i.test(path) && wanted.test(path))
    .sort()
    .map((path) => join(folder, path));
}
