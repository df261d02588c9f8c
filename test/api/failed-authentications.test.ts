// Clients that fail to authenticate are slowed down by address. A client with good credentials is
// never refused because of others.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { RegisterRoutes } from '../../src/api/server.ts';
import { createFailedAuthentications } from '../../src/http/failed-authentications.ts';
import { forEachTest } from '../support/opened.ts';
import { type ProblemDocument, startHarness, token } from './support.ts';

const burst = 60;

describe('failures of one address', () => {
  let nowMs = 0;
  const start = () => createFailedAuthentications(() => nowMs);
  const failTimes = (failures: ReturnType<typeof start>, address: string, times: number) =>
    Array.from({ length: times }, () => failures.failed(address));

  beforeEach(() => {
    nowMs = 1_000_000;
  });

  test('are limited after a burst to one answer a second', () => {
    const failures = start();

    expect(failTimes(failures, '198.51.100.7', burst)).toEqual(Array(burst).fill(undefined));
    expect(failures.failed('198.51.100.7')).toBe(1);
    nowMs += 999;
    expect(failures.failed('198.51.100.7')).toBe(1);
    nowMs += 1;
    expect(failures.failed('198.51.100.7')).toBeUndefined();
    expect(failures.failed('198.51.100.7')).toBe(1);
  });

  test('are forgotten after a minute', () => {
    const failures = start();
    failTimes(failures, '198.51.100.7', burst + 1_000);

    nowMs += burst * 1_000;

    expect(failTimes(failures, '198.51.100.7', burst)).toEqual(Array(burst).fill(undefined));
  });

  test.each<[string, string, string, boolean]>([
    ['another IPv4 address', '198.51.100.7', '198.51.100.8', false],
    ['the same one, mapped into IPv6', '198.51.100.7', '::ffff:198.51.100.7', true],
    ['another address of its /64', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', true],
    ['another /64 of its /48', '2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['another text that is not an address', 'pipe', '10.0.0.1:4711', true],
  ])('count, or do not count, for %s', (_what, one, other, together) => {
    const failures = start();
    failTimes(failures, one, burst + 1);

    expect(failures.failed(other) !== undefined).toBe(together);
  });

  test('are remembered for the ten thousand addresses that failed last', () => {
    const failures = start();
    for (const address of ['198.51.100.7', '198.51.100.8']) failTimes(failures, address, burst);
    for (let client = 0; client < 9_998; client += 1) {
      failures.failed(`10.1.${client >> 8}.${client & 0xff}`);
    }
    expect(failures.failed('198.51.100.7')).toBe(1);

    failures.failed('10.2.0.0');

    expect(failures.failed('198.51.100.7')).toBe(1);
    expect(failures.failed('198.51.100.8')).toBeUndefined();
  });
});

/** Registers a route as an area of the companion does. */
const keyed: RegisterRoutes = (server, caller) => {
  server.route({
    method: 'GET',
    url: '/keyed',
    onRequest: caller.require({ scheme: 'apiKey' }),
    schema: { response: { 200: z.object({}) } },
    handler: () => ({}),
  });
};

describe('a client that fails too often', () => {
  const calls = '/api/public/bot/st-1/calls';
  const client = '203.0.113.9';

  const harness = forEachTest(() => startHarness({}, [keyed]));
  beforeEach(async () => {
    // On a slow machine, sixty requests take longer than the second after which another one is
    // answered.
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  type Sent = {
    readonly url?: string;
    readonly from?: string;
    readonly headers?: Readonly<Record<string, string | string[]>>;
  };
  async function ask({ url = calls, from = client, headers = {} }: Sent = {}) {
    return await harness.server.inject({ url, remoteAddress: from, headers });
  }
  const statusOf = async (sent: Sent) => (await ask(sent)).statusCode;
  async function exhaust(sent: Sent): Promise<void> {
    for (let failure = 0; failure < burst; failure += 1) {
      expect(await statusOf(sent)).toBe(401);
    }
  }

  test('gets a 429 with Retry-After, whatever the mistake', async () => {
    await exhaust({ headers: { auth: 'x.y.z' } });

    const answer = await ask({
      headers: { auth: await token({ appId: 'app-1' }, { ttl: '-1h' }) },
    });

    expect(answer.statusCode).toBe(429);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.json<ProblemDocument>()).toMatchObject({
      type: 'urn:offhook:problem:too-many-requests',
      detail: expect.stringContaining('bad credentials') as string,
    });
    expect(await statusOf({ url: '/keyed', headers: { 'x-api-key': 'ofk_wrong' } })).toBe(429);
  });

  test('is also limited for wrong API keys', async () => {
    await exhaust({ url: '/keyed', headers: { 'x-api-key': 'ofk_wrong' } });

    expect(await statusOf({ url: '/keyed', headers: { 'x-api-key': 'ofk_wrong' } })).toBe(429);
    expect(await statusOf({})).toBe(429);
  });

  test('is answered if its credentials are good, and still needs their scope', async () => {
    await exhaust({});
    const auth = await token();

    expect(await statusOf({ headers: { auth } })).toBe(200);
    expect(await statusOf({ url: '/keyed', headers: { 'x-api-key': 'ofk_of-app-1' } })).toBe(200);
    expect(await statusOf({ url: '/api/public/bot/st-2/calls', headers: { auth } })).toBe(404);
    expect(await statusOf({})).toBe(429);
  });

  test('is identified by its own address, not by headers that it invents', async () => {
    await exhaust({
      headers: { 'x-forwarded-for': '198.51.100.1', forwarded: 'for=198.51.100.1' },
    });

    expect(await statusOf({ headers: { 'x-forwarded-for': '198.51.100.2' } })).toBe(429);
    expect(await statusOf({ from: '203.0.113.10' })).toBe(401);
  });

  // The harness trusts 192.0.2.0/28 and 2001:db8:ffff::/48.
  test.each<[string, string, string | string[], string | string[]]>([
    ['the proxy that it came through', '192.0.2.1', client, '203.0.113.10'],
    ['the last of two proxies', '192.0.2.1', `${client}, 192.0.2.2`, '203.0.113.10, 192.0.2.2'],
    [
      'a proxy that appends to a header that the client invented',
      '192.0.2.1',
      `1.2.3.4, ${client}`,
      '1.2.3.4, 203.0.113.10',
    ],
    [
      'a proxy that adds a header of its own',
      '192.0.2.1',
      ['1.2.3.4', client],
      ['1.2.3.4', '203.0.113.10'],
    ],
    ['a proxy of IPv6', '2001:db8:ffff::1', client, '203.0.113.10'],
    ['a proxy of IPv4, seen as IPv6', '::ffff:192.0.2.1', client, '203.0.113.10'],
  ])('is identified by %s', async (_who, from, clientHeader, otherClientHeader) => {
    await exhaust({ from, headers: { 'x-forwarded-for': clientHeader } });

    expect(await statusOf({ from: '192.0.2.3', headers: { 'x-forwarded-for': client } })).toBe(429);
    expect(await statusOf({ from, headers: { 'x-forwarded-for': otherClientHeader } })).toBe(401);
  });
});
