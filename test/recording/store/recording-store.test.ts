// What every store of recordings does, on a folder and on an S3 server; and how each fault of a
// store is reported.

import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRecordingStore } from '../../../src/recording/store/open-store.ts';
import {
  type BucketTarget,
  describeTarget,
  objectNames,
  type RecordingStore,
  type StoreTarget,
} from '../../../src/recording/store/recording-store.ts';
import { refusalOf } from '../../../src/recording/store/s3-requests.ts';
import { startTestS3, type TestS3 } from '../../support/s3-server.ts';

let folder: string;
let s3: TestS3;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-store-'));
  s3 = await startTestS3();
});

afterAll(async () => {
  await s3.stop();
  await rm(folder, { recursive: true, force: true });
});

const names = objectNames({
  ...{ accountId: 'acme', callId: 'call-1', isEncrypted: false },
  startedAt: new Date('2026-11-28T23:59:59Z'),
});

test('a recording is named by its account, its day and its call', () => {
  expect(names).toEqual({
    audio: 'acme/2026/11/28/call-1.wav',
    metadata: 'acme/2026/11/28/call-1.json',
  });
});

describe.each([
  ['a folder', (): StoreTarget => ({ kind: 'folder', path: join(folder, 'store') })],
  ['a bucket', (): StoreTarget => s3.target],
])('%s', (_, targetOf) => {
  let store: RecordingStore;

  beforeAll(() => {
    store = openRecordingStore(targetOf());
  });
  afterAll(() => store.close());

  const put = async (name: string, content: Buffer): Promise<void> => {
    const path = join(folder, 'source');
    await writeFile(path, content);
    expect(await store.put(name, path, 'audio/wav')).toEqual({ ok: true });
  };
  const readAll = async (name: string, range?: { start: number; end: number }) => {
    const found = await store.read(name, range);
    return found.kind === 'found' ? await buffer(found.content as Readable) : found.kind;
  };

  test('returns what was stored, whole or in part', async () => {
    const content = randomBytes(100_000);
    await put(names.audio, content);
    expect(await readAll(names.audio)).toEqual(content);
    expect(await readAll(names.audio, { start: 10, end: 109 })).toEqual(content.subarray(10, 110));
    expect(await store.read(names.audio, { start: 0, end: 9 })).toMatchObject({ bytes: 10 });
  });

  test('stores the same name again in place of the first', async () => {
    await put(names.metadata, Buffer.from('first'));
    await put(names.metadata, Buffer.from('second'));
    expect((await readAll(names.metadata)).toString()).toBe('second');
  });

  test('stores an hour-long recording, and an empty file', async () => {
    const content = randomBytes(18_000_001);
    await put('acme/long.wav', content);
    expect((await readAll('acme/long.wav')).length).toBe(content.length);
    expect(await readAll('acme/long.wav', { start: 17_999_990, end: 18_000_000 })).toEqual(
      content.subarray(17_999_990),
    );
    await put('acme/empty.wav', Buffer.alloc(0));
    expect(await readAll('acme/empty.wav')).toEqual(Buffer.alloc(0));
  });

  test('removes, also what is already gone', async () => {
    await put('acme/gone.wav', Buffer.from('gone'));
    expect(await store.remove('acme/gone.wav')).toEqual({ ok: true });
    expect(await store.remove('acme/gone.wav')).toEqual({ ok: true });
    expect(await readAll('acme/gone.wav')).toBe('missing');
  });

  test('passes its check, which leaves nothing', async () => {
    expect(await store.check()).toEqual({ ok: true });
  });

  test('says where a recording is', () => {
    const name = describeTarget(targetOf());
    const address = name.startsWith('s3:') ? name : `file://${name}`;
    expect(store.locationOf('acme/1.wav')).toBe(`${address}/acme/1.wav`);
  });
});

describe('a folder', () => {
  test('has no half files after a failure, and refuses names that leave it', async () => {
    const store = openRecordingStore({ kind: 'folder', path: join(folder, 'halves') });
    expect(await store.put('a/b.wav', join(folder, 'missing'), 'audio/wav')).toMatchObject({
      ...{ ok: false, fault: { kind: 'unreachable', code: 'ENOENT' } },
    });
    expect(await readdir(join(folder, 'halves/a'))).toEqual([]);
    await expect(store.put('../out.wav', join(folder, 'source'), 'audio/wav')).rejects.toThrow();
  });

  test('that is a file is refused', async () => {
    await writeFile(join(folder, 'file'), '');
    const store = openRecordingStore({ kind: 'folder', path: join(folder, 'file') });
    expect(await store.check()).toMatchObject({ ok: false, fault: { kind: 'refused' } });
  });
});

describe('a bucket', () => {
  const checkOf = async (changes: Partial<BucketTarget>) => {
    const store = openRecordingStore({ ...s3.target, ...changes });
    const done = await store.check();
    await store.close();
    return done;
  };

  test('gives a link that anybody can read for a time', async () => {
    const store = openRecordingStore(s3.target);
    const path = join(folder, 'linked');
    await writeFile(path, 'linked');
    await store.put('acme/linked.wav', path, 'audio/wav');
    const link = new URL((await store.link?.('acme/linked.wav', 300)) ?? '');
    expect(link.searchParams.get('X-Amz-Expires')).toBe('300');
    const response = await fetch(link);
    expect([response.headers.get('content-type'), await response.text()]).toEqual([
      'audio/wav',
      'linked',
    ]);
    await store.close();
  });

  test('names a wrong access key, and a bucket that does not exist', async () => {
    expect(await checkOf({ accessKeyId: 'AKIDWRONG' })).toEqual({
      ok: false,
      fault: {
        ...{ kind: 'refused', code: 'InvalidAccessKeyId' },
        detail: 'the store refuses AWS_ACCESS_KEY_ID or its secret (InvalidAccessKeyId)',
      },
    });
    expect(await checkOf({ bucket: 'elsewhere' })).toEqual({
      ok: false,
      fault: {
        ...{ kind: 'refused', code: 'NoSuchBucket' },
        detail: 'the bucket elsewhere does not exist',
      },
    });
  });

  test('that does not respond is unreachable', async () => {
    expect(await checkOf({ endpoint: 'http://127.0.0.1:9' })).toEqual({
      ok: false,
      fault: {
        ...{ kind: 'unreachable', code: 'ECONNREFUSED' },
        detail: 'the store cannot be reached (ECONNREFUSED)',
      },
    });
  });

  test.each([
    [403, 'ExpiredToken', 'refused', /refuses AWS_ACCESS_KEY_ID/],
    [403, 'AccessDenied', 'refused', /may not do this in the bucket b/],
    [400, 'AuthorizationHeaderMalformed', 'refused', /is not in S3_REGION r/],
    [403, 'RequestTimeTooSkewed', 'refused', /clock/],
    [503, 'SlowDown', 'slow', /fewer requests/],
    [500, 'InternalError', 'unreachable', /has failed/],
    [403, 'QuotaExceeded', 'full', /is full/],
  ] as const)('that responds with %i %s', (status, code, kind, detail) => {
    const fault = refusalOf(status, code, { bucket: 'b', region: 'r' });
    expect(fault).toMatchObject({ kind, code });
    expect(fault.detail).toMatch(detail);
  });
});

describe('a bucket behind a bad line', () => {
  let server: Server;
  let endpoint: string;
  const requests: string[] = [];
  let failures = 0;

  /** Plays the failures of a line; a real server has none of them on demand. */
  const answerTo = ({ url = '', method }: IncomingMessage): readonly [number, string] => {
    const error = '<Error><Code>InternalError</Code></Error>';
    if (url.includes('uploads')) return [200, '<UploadId>u1</UploadId>'];
    if (method === 'POST') return [200, error];
    if (!url.includes('partNumber') || failures === 0) return [200, ''];
    failures -= 1;
    return [500, error];
  };
  beforeAll(async () => {
    server = createServer((request, response) => {
      requests.push(`${request.method} ${new URL(request.url ?? '', 'http://s3').search}`);
      request.resume();
      request.on('end', () => {
        const [status, text] = answerTo(request);
        response.writeHead(status, { etag: '"tag"' }).end(text);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  test('gets a part again, sees a failure after a 200, and keeps no parts', async () => {
    failures = 1;
    const path = join(folder, 'parts');
    await writeFile(path, Buffer.alloc(9_000_000));
    const store = openRecordingStore({ ...s3.target, endpoint });
    expect(await store.put('long.wav', path, 'audio/wav')).toMatchObject({
      ...{ ok: false, fault: { kind: 'unreachable', code: 'InternalError' } },
    });
    expect(requests).toEqual([
      'POST ?uploads=',
      'PUT ?partNumber=1&uploadId=u1',
      'PUT ?partNumber=1&uploadId=u1',
      'PUT ?partNumber=2&uploadId=u1',
      ...Array<string>(3).fill('POST ?uploadId=u1'),
      'DELETE ?uploadId=u1',
    ]);
    await store.close();
  });
});
