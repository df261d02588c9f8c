// The lock of the data folder, between real processes.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { lockDataDir } from '../../src/embedded/data-dir-lock.ts';

const program = fileURLToPath(new URL('data-dir-lock-process.ts', import.meta.url));
/** Whether this user may create network namespaces. Root may, and so may some other users. */
const mayUnshare = spawnSync('env', ['unshare', '--net', 'true']).status === 0;

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-lock-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Resolves with the process's first line: `held`, or the reason why not. */
async function start(folder: string, wrapper: readonly string[] = []) {
  const command = [...wrapper, process.execPath, '--import', 'tsx', program, folder];
  const child = spawn('env', command, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  const [said] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { said, kill, stop: () => void child.kill('SIGSTOP') };
}

const inUse = (folder: string): string =>
  `${folder} is in use by another Offhook process; end it, or set another DATA_DIR`;

describe('the lock of the data folder', () => {
  test('has one holder at a time, and can be released', async () => {
    const folder = await aFolder();
    const lock = await lockDataDir(folder);
    await expect(lockDataDir(folder)).rejects.toThrow(inUse(folder));
    await lock.release();
    await (await lockDataDir(folder)).release();
    expect(await readdir(folder)).toEqual([]);
  });

  test('belongs to the folder, whatever path leads there', async () => {
    const folder = await aFolder();
    const link = join(await aFolder(), 'link');
    await symlink(folder, link);
    const lock = await lockDataDir(folder);
    onTestFinished(() => lock.release());

    await expect(lockDataDir(link)).rejects.toThrow(inUse(link));
  });

  test('works in a folder whose path is too long for a socket', async () => {
    const folder = join(await aFolder(), 'x'.repeat(200));
    const lock = await lockDataDir(folder);
    onTestFinished(() => lock.release());

    await expect(lockDataDir(folder)).rejects.toThrow(inUse(folder));
  });

  test('does not affect other folders', async () => {
    const locks = await Promise.all(
      [aFolder(), aFolder()].map(async (each) => lockDataDir(await each)),
    );
    for (const lock of locks) await lock.release();
  });

  test('ends with its process, even if that is killed', async () => {
    const folder = await aFolder();
    const holder = await start(folder);
    expect(holder.said).toBe('held');
    expect((await start(folder)).said).toBe(inUse(folder));

    await holder.kill();

    expect((await start(folder)).said).toBe('held');
    expect(await readdir(folder)).toHaveLength(1);
  });

  test('stays with a stopped process', async () => {
    const folder = await aFolder();
    const holder = await start(folder);
    holder.stop();

    expect((await start(folder)).said).toBe(inUse(folder));
  });

  test('goes to one of many simultaneous starts', async () => {
    const folder = await aFolder();
    const tries = await Promise.allSettled(Array.from({ length: 12 }, () => lockDataDir(folder)));
    const held = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));

    expect(held).toHaveLength(1);
    await held[0]?.release();
    expect(await readdir(folder)).toEqual([]);
  });

  test.runIf(mayUnshare)('works across network namespaces, as between containers', async () => {
    const folder = await aFolder();
    const lock = await lockDataDir(folder);
    expect((await start(folder, ['unshare', '--net'])).said).toBe(inUse(folder));
    await lock.release();

    const holder = await start(folder, ['unshare', '--net']);
    expect(holder.said).toBe('held');
    await expect(lockDataDir(folder)).rejects.toThrow(inUse(folder));
    await holder.kill();
    await (await lockDataDir(folder)).release();
  });

  test.runIf(mayUnshare)('is separate for two folders under the same path', async () => {
    // The situation of two containers with host networking, each with a /data of its own.
    const parent = await aFolder();
    const path = join(parent, 'data');
    await mkdir(path);
    const own = [
      'unshare',
      '--mount',
      'sh',
      '-c',
      `mount -t tmpfs none ${path} && exec "$@"`,
      'sh',
    ];

    const [one, other] = await Promise.all([start(path, own), start(path, own)]);

    expect([one.said, other.said]).toEqual(['held', 'held']);
  });
});
