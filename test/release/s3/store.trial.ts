// The store of recordings on an S3 server that calculates every signature.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRecordingStore } from '../../../src/recording/store/open-store.ts';
import type { BucketTarget, RecordingStore } from '../../../src/recording/store/recording-store.ts';
import { startSwift } from './swift.ts';

let swift: Awaited<ReturnType<typeof startSwift>>;
let folder: string;
let store: RecordingStore;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-store-'));
  swift = await startSwift();
  store = openRecordingStore(swift.target);
});
afterAll(async () => {
  await store.close();
  await swift.stop();
  await rm(folder, { recursive: true, force: true });
});

// One request, several parts, and a name whose characters must be escaped before they are signed.
test.each([
  ['acme/2026/11/28/call-1.wav', 100_000],
  ['acme/2026/11/28/call-2.wav.enc', 18_000_001],
  ['a b+c%&=/2026/11/28/call ü.wav', 0],
])('stores, reads, links and removes %s of %i bytes', async (name, size) => {
  const content = randomBytes(size);
  const path = join(folder, 'source');
  await writeFile(path, content);
  expect(await store.put(name, path, 'audio/wav')).toEqual({ ok: true });
  const readAll = async (range?: { readonly start: number; readonly end: number }) => {
    const found = await store.read(name, range);
    return found.kind === 'found' ? await buffer(found.content) : found.kind;
  };
  expect(content.equals((await readAll()) as Buffer)).toBe(true);
  if (size > 0) expect(await readAll({ start: 5, end: 14 })).toEqual(content.subarray(5, 15));
  const linked = await fetch((await store.link?.(name, 60)) ?? '');
  expect(content.equals(Buffer.from(await linked.arrayBuffer()))).toBe(true);
  expect([await store.remove(name), await store.remove(name)]).toEqual([
    { ok: true },
    { ok: true },
  ]);
  expect(await readAll()).toBe('missing');
});

test('passes its check, and names a wrong secret, key and bucket', async () => {
  const checkOf = async (changes: Partial<BucketTarget>) => {
    const other = openRecordingStore({ ...swift.target, ...changes });
    const done = await other.check();
    await other.close();
    return done.ok ? 'ok' : `${done.fault.kind} ${done.fault.code}`;
  };
  expect(await checkOf({})).toBe('ok');
  expect(await checkOf({ secretAccessKey: 'wrong' })).toBe('refused SignatureDoesNotMatch');
  expect(await checkOf({ accessKeyId: 'test:nobody' })).toMatch(/^refused /);
  expect(await checkOf({ bucket: 'elsewhere' })).toBe('refused NoSuchBucket');
});

test('refuses a link whose signature was changed', async () => {
  const link = new URL((await store.link?.('acme/any.wav', 60)) ?? '');
  link.searchParams.set('X-Amz-Signature', '0'.repeat(64));
  expect((await fetch(link)).status).toBe(403);
});
