// The largest page over real sockets: its compression, and whether its text matches the documented
// schema.

import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { request } from 'undici';
import { beforeAll, describe, expect, test } from 'vitest';
import { messagePage } from '../../src/companion/history/message-schema.ts';
import { token } from '../api/support.ts';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { type Page, tell } from './history-support.ts';
import { startRig } from './support.ts';

const decoders: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  deflate: inflateSync,
  identity: (body) => body,
};

describe.each(databaseKinds)('ten thousand messages on %s', (kind) => {
  let url: string;
  let auth: string;
  const rig = forSuite(() => startRig(kind));
  beforeAll(async () => {
    const told = Array.from({ length: 10_050 }, (_, index) => ({
      sessionId: `ss-${Math.floor(index / 20)}`,
      createdBy: `user-${index % 2}`,
      secureForm: { pin: 'not to be shown' },
      traceId: 'tc-1',
      components: [{ cT: 'text', data: { text: `Zeile ${index} \u2028 "\\" 😀 \ud800 \u0000` } }],
    }));
    await tell(rig.database, told);
    const origin = await rig.server.listen({ host: '127.0.0.1', port: 0 });
    url = `${origin}/api/public/bot/st-1/getMessagesV2`;
    auth = await token({ appId: rig.acme.appId }, { secret: rig.acme.jwtSecret });
  });

  const ask = async (acceptEncoding: string | undefined, body: object = {}) => {
    const response = await request(url, {
      method: 'POST',
      headers: {
        auth,
        'content-type': 'application/json',
        ...(acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding }),
      },
      body: JSON.stringify(body),
    });
    const { 'content-encoding': encoding = 'identity', ...headers } = response.headers;
    const sent = Buffer.from(await response.body.arrayBuffer());
    const text = decoders[String(encoding)]?.(sent).toString() ?? '';
    return { status: response.statusCode, encoding, headers, sent, page: JSON.parse(text) as Page };
  };

  test('are one page, and each matches its schema', async () => {
    covers('history.messages.rule.v2-limit', 'history.post.body.limit');
    const { status, headers, page } = await ask(undefined);

    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    const { messages, ...rest } = messagePage.strict().parse(page);
    expect(rest).toEqual({ total: 10_050, moreAvailable: true, icon: '' });
    expect(messages).toHaveLength(10_000);
    expect(page.messages).toEqual(messages);
    const numbers = messages.map(({ components: [component] }) =>
      Number(/Zeile (\d+)/.exec(String(component?.data['text']))?.[1]),
    );
    expect(numbers).toEqual(Array.from({ length: 10_000 }, (_, index) => 10_049 - index));
    expect(messages[0]?.components[0]?.data).toEqual({
      text: 'Zeile 10049 \u2028 "\\" 😀 \ufffd \ufffd',
    });
  });

  test.each([
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['deflate', 'deflate'],
    ['gzip;q=0.9, deflate;q=1, br;q=0.1', 'deflate'],
    ['br;q=0, gzip', 'gzip'],
    ['identity', 'identity'],
    ['zstd', 'identity'],
    [undefined, 'identity'],
  ])('accept-encoding %s results in %s', async (accepted, expected) => {
    covers('history.messages.header.accept-encoding');
    // Below and above the size up to which a response is compressed at once.
    for (const limit of [20, 500]) {
      const { encoding, headers, sent, page } = await ask(accepted, { limit });

      expect(encoding).toBe(expected);
      expect(page.messages).toHaveLength(limit);
      if (expected === 'identity') continue;
      expect(headers['vary']).toBe('accept-encoding');
      expect(sent.length).toBeLessThan(JSON.stringify(page).length / 2);
    }
  });

  test('a small page is not compressed, and compressed request bodies are not decompressed', async () => {
    const { encoding, page } = await ask('gzip, deflate, br', { limit: 1 });

    expect(encoding).toBe('identity');
    expect(page.messages).toHaveLength(1);
    const response = await request(url, {
      method: 'POST',
      headers: { auth, 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: '{}',
    });
    expect(response.statusCode).toBe(415);
    await response.body.dump();
  });

  test('with skipped sessions, trace ids and form input', async () => {
    const { page } = await ask('br', {
      skip: 100,
      userId: 'user-1',
      includeTraceId: true,
      includeSecureForm: true,
    });

    expect(page.total).toBe(5_025);
    expect(page.messages).toHaveLength(4_030);
    expect(messagePage.strict().parse(page).messages[4_029]).toMatchObject({
      sessionId: 'ss-0',
      secureForm: { pin: 'not to be shown' },
    });
  });
});
