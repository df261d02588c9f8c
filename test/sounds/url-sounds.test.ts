// Sounds by URL, from a real HTTP server on loopback: fetched once, revalidated, and kept while the
// server fails.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { createHostResolver } from '../../src/lib/host-resolver.ts';
import { createConverter } from '../../src/sounds/converter.ts';
import { createSoundFetcher, type SoundFetcher } from '../../src/sounds/sound-fetch.ts';
import { UrlSounds } from '../../src/sounds/url-sounds.ts';
import { testSound } from '../support/test-sound.ts';
import { makeWav, sine } from '../support/wav.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const short = makeWav({ samples: [sine(1_000, 8_000, 100)] });
const long = makeWav({ samples: [sine(1_000, 8_000, 200)] });

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let asked: IncomingMessage[];
let answer: Answer;
let nowMs: number;
let sounds: UrlSounds;
let fetcher: SoundFetcher;
let origin: string;
const converter = createConverter();
const server = createServer((request, response) => {
  asked.push(request);
  answer(request, response);
});

function fetching(networks: readonly string[], timeoutMs = 60_000): SoundFetcher {
  return createSoundFetcher({
    guard: createAddressGuard(networks),
    privateGuard: createAddressGuard(networks, createHostResolver(), false),
    timeoutMs,
  });
}

const serve =
  (file: Buffer, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(200, headers).end(file);
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(code, headers).end();

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  fetcher = fetching(['127.0.0.0/8']);
});
beforeEach(() => {
  asked = [];
  answer = serve(short, { etag: '"1"' });
  nowMs = 0;
  sounds = new UrlSounds({ fetcher, converter, nowMs: () => nowMs });
});
afterAll(async () => {
  await fetcher.close();
  await converter.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const load = (path = '/offer.wav?token=s3cret') => sounds.load(new URL(path, origin));
const durationOf = async () => {
  const result = await load();
  return result.ok ? result.sound.durationMs : result.reason;
};

describe('a sound at a URL', () => {
  test('is fetched once for many calls, shared between threads, and named without its query', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => load()));
    results.push(await load());

    expect(asked).toHaveLength(1);
    for (const result of results) {
      expect(result).toMatchObject({
        ok: true,
        sound: { name: `${origin}/offer.wav`, durationMs: 100 },
      });
      expect(result.ok && result.sound.mulaw.buffer).toBeInstanceOf(SharedArrayBuffer);
      expect(result.ok && result.sound).toEqual(
        result.ok && testSound(`${origin}/offer.wav`, result.sound.mulaw),
      );
    }
  });

  test('is revalidated once a minute at most, by its ETag', async () => {
    await load();
    nowMs = minuteMs - 1;
    await load();
    expect(asked).toHaveLength(1);

    nowMs = minuteMs;
    answer = status(304);
    expect(await durationOf()).toBe(100);
    expect(asked[1]?.headers['if-none-match']).toBe('"1"');
    nowMs = 2 * minuteMs - 1;
    await load();
    expect(asked).toHaveLength(2);
  });

  test('is revalidated by its date if it has no ETag', async () => {
    const modified = 'Fri, 20 Nov 2026 09:00:00 GMT';
    answer = serve(short, { 'last-modified': modified });
    await load();
    nowMs = minuteMs;
    await load();

    expect(asked[1]?.headers['if-modified-since']).toBe(modified);
  });

  test('is replaced when its server has a new one', async () => {
    await load();
    nowMs = minuteMs;
    answer = serve(long, { etag: '"2"' });

    expect(await durationOf()).toBe(200);
  });

  test.each<[string, Answer]>([
    ['answers 503', status(503)],
    ['answers 302', status(302, { location: '/other.wav' })],
    ['answers with a page', serve(Buffer.from('<html>'))],
    ['closes the connection', (request) => void request.socket.destroy()],
  ])('stays usable for 24 h if its server %s', async (_name, failing) => {
    await load();
    answer = failing;
    nowMs = minuteMs;
    expect(await durationOf()).toBe(100);
    nowMs = dayMs - 1;
    expect(await durationOf()).toBe(100);
    nowMs = dayMs + minuteMs;
    expect(await durationOf()).toMatch(/is not available/);
    expect(asked.every(({ url }) => url === '/offer.wav?token=s3cret')).toBe(true);
  });

  test('is dropped when its server no longer has it', async () => {
    await load();
    nowMs = minuteMs;
    answer = status(404);

    expect(await durationOf()).toBe(
      `The sound at ${origin}/offer.wav is not available: the server responded with 404`,
    );
  });

  test.each<[string, Answer, RegExp]>([
    ['a page', serve(Buffer.from('<html>')), /it is not a sound: not a WAV file/],
    ['a redirect', status(302, { location: '/other.wav' }), /the server responded with 302/],
    ['more than 10 MiB', serve(Buffer.alloc(10 * 1_024 * 1_024 + 1)), /larger than 10 MiB/],
    ['a 304 without a condition in the request', status(304), /the server responded with 304/],
  ])('is rejected if it is %s', async (_name, wrong, reason) => {
    answer = wrong;
    expect(await durationOf()).toMatch(reason);
    expect(await durationOf()).not.toMatch(/s3cret/);
  });
});

describe('a URL from which no sound is fetched', () => {
  test.each([
    ['a private address', 'https://10.0.0.1/a.wav', /private, local or reserved/],
    ['loopback, unless it is allowed', 'https://127.0.0.1/a.wav', /private, local or reserved/],
    [
      'a public address without TLS',
      'http://192.0.2.1/a.wav',
      /http is allowed only in the networks/,
    ],
    ['a name that resolves to loopback', 'https://localhost/a.wav', /private, local or reserved/],
  ])('%s', async (_name, url, reason) => {
    const closed = fetching([]);
    const fetched = await closed.fetch(new URL(url), {});
    await closed.close();

    expect(fetched).toMatchObject({
      kind: 'failed',
      reason: expect.stringMatching(reason),
    });
    expect(asked).toEqual([]);
  });

  test('gives up a server that never finishes', async () => {
    answer = (_request, response) => void response.writeHead(200).write('RIFF');
    const impatient = fetching(['127.0.0.0/8'], 100);
    const fetched = await impatient.fetch(new URL('/slow.wav', origin), {});
    await impatient.close();

    expect(fetched).toEqual({ kind: 'failed', reason: 'it did not arrive within 0.1 s' });
  });
});

describe('an address in a URL', () => {
  test.each([
    ['https://93.184.216.34/a.wav', [], true],
    ['https://sounds.example/a.wav', [], true],
    ['https://10.0.0.1/a.wav', [], false],
    ['https://10.0.0.1/a.wav', ['10.0.0.0/8'], true],
    ['https://[::ffff:10.0.0.1]/a.wav', [], false],
    ['https://169.254.169.254/a.wav', ['10.0.0.0/8'], false],
    ['http://10.0.0.1/a.wav', ['10.0.0.0/8'], true],
    ['http://93.184.216.34/a.wav', ['10.0.0.0/8'], false],
    // The name may resolve to an address in the list. With an empty list it cannot.
    ['http://sounds.example/a.wav', ['10.0.0.0/8'], true],
    ['http://sounds.example/a.wav', [], false],
  ])('%s may be fetched with %j allowed: %s', async (url, networks, expected) => {
    const guarded = fetching(networks);

    expect(guarded.mayFetch(new URL(url))).toBe(expected);
    await guarded.close();
  });
});
