// Result files in a real object store, and the links to them.

import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Objm } from '@nats-io/obj';
import { millis } from '@nats-io/transport-node';
import fastify from 'fastify';
import { beforeAll, describe, expect, test } from 'vitest';
import { createResultFiles, type ResultFile } from '../../src/companion/result-files.ts';
import { createResultLinks, linkBase } from '../../src/companion/test-runs/result-links.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { startTestNats, withParts } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';
import { openBucket } from './test-runs-support.ts';

const chunkBytes = 128 * 1_024;

describe('result files', () => {
  const nats = forSuite(startTestNats);
  const connection = forSuite(() => nats.connect());
  beforeAll(async () => {
    await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
  });

  async function put(name: string, content: Buffer): Promise<void> {
    await (await openBucket(connection)).putBlob({ name }, content);
  }

  const read = async (file: ResultFile | undefined) =>
    Buffer.concat((await file?.content.toArray()) ?? []);

  test.each([0, 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes])(
    'of %d bytes are returned completely',
    async (size) => {
      const content = randomBytes(size);
      await put(`of-${size}`, content);

      const file = await createResultFiles(connection).open(`of-${size}`);

      expect(file?.size).toBe(size);
      expect((await read(file)).equals(content)).toBe(true);
    },
  );

  test('are read no faster than the reader takes them', async () => {
    await put('long', randomBytes(40 * chunkBytes));
    let asked = 0;
    const { direct } = connection.manager;
    const counting = Object.create(direct, {
      getMessage: {
        value: (...request: Parameters<typeof direct.getMessage>) => {
          asked += 1;
          return direct.getMessage(...request);
        },
      },
    }) as typeof direct;
    const manager = Object.create(connection.manager, {
      direct: { value: counting },
    }) as typeof connection.manager;
    const file = await createResultFiles(withParts(connection, { manager })).open('long');
    const content = file?.content[Symbol.asyncIterator]();

    for (let taken = 1; taken <= 3; taken += 1) {
      await content?.next();
      expect(asked).toBeLessThanOrEqual(taken + 2);
    }
    await content?.return?.();
  });

  test('that are replaced or deleted during a read end with an error, never as another file', async () => {
    for (const change of ['replace', 'delete'] as const) {
      await put('moving', randomBytes(8 * chunkBytes));
      const file = await createResultFiles(connection).open('moving');
      const content = file?.content[Symbol.asyncIterator]();
      await content?.next();
      if (change === 'replace') await put('moving', randomBytes(8 * chunkBytes));
      else await (await openBucket(connection)).delete('moving');

      const rest = async () => {
        while ((await content?.next())?.done === false);
      };
      await expect(rest()).rejects.toThrow('replaced');
    }
  });

  test('with a wrong digest end before their last chunk', async () => {
    await put('forged', randomBytes(2 * chunkBytes));
    const bucket = await openBucket(connection);
    const info = await bucket.info('forged');
    const name = streamNames(connection.prefix).resultBucket;
    const meta = `$O.${name}.M.${Buffer.from('forged').toString('base64url')}`;
    const digest = `SHA-256=${randomBytes(32).toString('base64url')}=`;
    const { nuid, size, chunks } = info ?? {};
    const forged = { name: 'forged', bucket: name, nuid, size, chunks, digest };
    await connection.jetstream.publish(meta, JSON.stringify(forged));

    const file = await createResultFiles(connection).open('forged');
    const sizes: number[] = [];
    const all = async () => {
      for await (const piece of file?.content ?? []) sizes.push((piece as Buffer).length);
    };

    await expect(all()).rejects.toThrow('does not match its digest');
    expect(sizes).toEqual([chunkBytes]);
  });

  test('are undefined if they are missing, deleted or only a link', async () => {
    const bucket = await openBucket(connection);
    const other = await new Objm(connection.jetstream).create('other-bucket');
    await bucket.link('link', await other.putBlob({ name: 'secret' }, Buffer.from('x')));
    await put('deleted', Buffer.from('x'));
    await bucket.delete('deleted');
    const files = createResultFiles(connection);

    expect(await files.open('link')).toBeUndefined();
    expect(await files.open('deleted')).toBeUndefined();
    expect(await files.open('never')).toBeUndefined();
  });

  test('are stored once: a second file of the same name is ignored', async () => {
    const files = createResultFiles(connection);
    await files.put('acme/b-1/tr-1/7', 'once');
    await files.put('acme/b-1/tr-1/7', 'twice');

    expect((await read(await files.open('acme/b-1/tr-1/7'))).toString()).toBe('once');
  });

  test('are kept for the configured time, also in an existing bucket', async () => {
    await ensureStreams(connection, { eventDays: 3, contextHours: 1 });

    const { ttl } = await (await openBucket(connection)).status();

    expect(millis(ttl)).toBe(3 * 86_400_000);
    expect(streamNames('offhook').resultBucket).toBe('test-results');
  });
});

describe('links to result files', () => {
  const run = { accountId: 'acme', botId: 'b-1', runId: 'tr-1' };
  const queryOf = (link: string) => {
    const { searchParams } = new URL(link, 'http://x');
    return {
      expires: searchParams.get('expires') ?? '',
      signature: searchParams.get('signature') ?? '',
    };
  };

  test('are valid for 15 minutes, on every node with the same key, and with no other key', () => {
    const keyBytes = randomBytes(32);
    let nowMs = 1_795_000_000_000;
    const clock = { now: () => new Date(nowMs) };
    const link = queryOf(createResultLinks(createSecretBox(keyBytes), clock).make(run));
    const another = createResultLinks(createSecretBox(keyBytes), clock);
    const stranger = createResultLinks(createSecretBox(randomBytes(32)), clock);

    expect(another.check(run, link)).toBe('good');
    expect(stranger.check(run, link)).toBe('changed');
    nowMs += 15 * 60_000;
    expect(another.check(run, link)).toBe('good');
    nowMs += 1_000;
    expect(another.check(run, link)).toBe('expired');
  });

  test.each([
    ['https://calls.example.com', 'evil.example.com', 'https://calls.example.com'],
    ['https://example.com/offhook/', 'localhost:1', 'https://example.com/offhook'],
    [undefined, 'localhost:3000', 'http://localhost:3000'],
    [undefined, '[::1]:3000', 'http://[::1]:3000'],
    [undefined, 'evil.example.com', undefined],
    [undefined, 'localhost.evil.example.com', undefined],
    [undefined, 'localhost:3000@evil.example.com', undefined],
    [undefined, '127.0.0.1:80/..', undefined],
    [undefined, '', undefined],
  ])('with PUBLIC_URL %s and Host %j begin with %s', async (publicUrl, host, expected) => {
    const server = fastify();
    server.get('/', (incoming) => linkBase(incoming, publicUrl));
    await server.listen({ host: '127.0.0.1', port: 0 });
    const { port } = server.server.address() as AddressInfo;
    try {
      // Undefined stands for the address on which the request arrived.
      expect(await get(port, host)).toBe(expected ?? `http://127.0.0.1:${port}`);
    } finally {
      await server.close();
    }
  });
});

async function get(port: number, host: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1', headers: { host } }, (response) => {
      response.setEncoding('utf8');
      response.once('data', resolve);
    });
    outgoing.once('error', reject).end();
  });
}
