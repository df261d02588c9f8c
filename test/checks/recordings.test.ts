// A spool or a store that can't be used is named before the start, which goes on.

import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runChecks } from '../../src/checks/check.ts';
import { recordingsCheck } from '../../src/checks/recordings.ts';
import type { BucketTarget, StoreTarget } from '../../src/recording/store/recording-store.ts';
import { startTestS3 } from '../support/s3-server.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-check-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function examined(store: StoreTarget, spool = join(folder, 'spool')) {
  const recording = { store, spool, retentionDays: 30 };
  const [result] = await runChecks([recordingsCheck({ recording })], 10_000);
  return result;
}

test('folders that can be made are fine, and are not made', async () => {
  const path = join(folder, 'data/recordings');
  const result = await examined({ kind: 'folder', path });
  // The disk of a test machine may be nearly full.
  expect(result?.isAwaited).toBe(true);
  expect(['ok', 'warning']).toContain(result?.state);
  expect(await readdir(folder)).toEqual([]);
});

test('a folder that cannot be written is named with its variable', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '');
  expect(await examined({ kind: 'folder', path: file }, join(file, 'spool'))).toMatchObject({
    ...{ isAwaited: true, state: 'failed' },
    detail: [
      `RECORDING_SPOOL: ${file}/spool cannot be written: a part of the path is a file (ENOTDIR)`,
      `RECORDING_STORE: ${file} cannot be written: a part of the path is a file (ENOTDIR)`,
    ].join('; '),
  });
});

test('a bucket that takes an object is fine; its refusal and its absence are named', async () => {
  const s3 = await startTestS3();
  const detailOf = async (changes: Partial<BucketTarget>) =>
    (await examined({ ...s3.target, ...changes }))?.detail;
  expect(await detailOf({})).toContain('s3://recordings/calls can be written');
  expect(await detailOf({ accessKeyId: 'AKIDWRONG' })).toContain(
    'RECORDING_STORE: s3://recordings/calls cannot be used: the store refuses AWS_ACCESS_KEY_ID or its secret (InvalidAccessKeyId)',
  );
  expect(await detailOf({ bucket: 'elsewhere' })).toContain('the bucket elsewhere does not exist');
  await s3.stop();
  expect(await detailOf({})).toContain('the store cannot be reached (ECONNREFUSED)');
});
