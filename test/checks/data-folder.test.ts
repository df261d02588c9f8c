// Tests that unusable folders are reported at once, with the reason.

import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runChecks } from '../../src/checks/check.ts';
import { dataFolderCheck, diskCheck, judgeSpace } from '../../src/checks/data-folder.ts';
import { makeFolder } from '../../src/lib/make-folder.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-folder-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function examined(dataDir: string, keep = true) {
  const [result] = await runChecks([dataFolderCheck(dataDir, { keep })]);
  return result;
}

describe('a data folder', () => {
  test('is created with its missing parents, for its owner only', async () => {
    const dataDir = join(folder, 'a', 'b');

    expect(await examined(dataDir)).toMatchObject({ state: 'ok' });

    for (const made of [join(folder, 'a'), dataDir]) {
      expect((await stat(made)).mode & 0o777).toBe(0o700);
    }
    expect(await readdir(dataDir)).toEqual([]);
  });

  test('is created for the check if it is missing, and removed afterwards', async () => {
    expect(await examined(join(folder, 'a', 'b'), false)).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining('does not exist yet') as string,
    });
    expect(await readdir(folder)).toEqual([]);
  });

  test.runIf(process.platform === 'linux')(
    'fails without endless retries if the file system accepts no folders',
    async () => {
      expect(await examined('/proc/x/y')).toMatchObject({
        state: 'failed',
        detail:
          'DATA_DIR: /proc/x/y cannot be created: the file system accepts no folders there (ENOENT)',
      });
    },
  );

  test('fails if it is a file, or below a file', async () => {
    const file = join(folder, 'file');
    await writeFile(file, '');

    expect((await examined(file))?.detail).toContain('cannot be created: it is a file (EEXIST)');
    expect((await examined(join(file, 'x')))?.detail).toContain('a part of the path is a file');
  });

  test('is created only once by concurrent callers', async () => {
    const path = join(folder, 'a', 'b', 'c');

    const made = await Promise.all([makeFolder(path), makeFolder(path), makeFolder(path)]);

    expect((await stat(path)).isDirectory()).toBe(true);
    expect(made).toContain(join(folder, 'a'));
    expect(await makeFolder(path)).toBeUndefined();
    await chmod(path, 0o755);
  });
});

describe('the disk', () => {
  test('is the disk of the nearest existing folder', async () => {
    const [result] = await runChecks([diskCheck(join(folder, 'a'), { embedded: false })]);

    expect(result).toMatchObject({
      name: 'disk',
      detail: expect.stringMatching(/ [MG]iB left/) as string,
    });
  });

  test.each([
    [{ free: 20_480, needed: 150 }, 'ok', '20 GiB left'],
    [{ free: 900, needed: 150 }, 'warning', '900 MiB left'],
    [
      { free: 12, needed: 150 },
      'failed',
      'DATA_DIR: the disk of /data has 12 MiB left, but Offhook needs 150 MiB',
    ],
  ] as const)('with %j in MiB: %s', ({ free, needed }, state, detail) => {
    expect(judgeSpace(free, needed, '/data')).toEqual({ state, detail });
  });
});
