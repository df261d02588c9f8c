// Access to the console: links that sign in once, cookies, and requests of other pages.

import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { createSessionStore } from '../../src/console/session-store.ts';
import type { App } from '../../src/store/apps/app-directory.ts';
import { app, apps, type Harness, token } from '../api/support.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { asker, cookieOf, origin, startConsole } from './support.ts';

const minuteMs = 60_000;

describe.each(databaseKinds)('the console on %s', (kind) => {
  let database: TestDatabase;
  let harness: Harness;
  let now: Date;
  let known: Record<string, App | undefined>;
  let asked: CallId[];
  let ask: ReturnType<typeof asker>;

  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(async () => {
    await database.remove();
  });

  beforeEach(async () => {
    now = new Date('2026-11-20T08:00:00Z');
    asked = [];
    known = { ...apps, operator: app({ appId: 'operator', scopes: ['Dialout', 'Operate'] }) };
    const appNow = async (appId: string) => known[appId];
    harness = await startConsole({
      database,
      now: () => now,
      services: { apps: { find: appNow, findByApiKey: async () => undefined } },
      options: {
        appNow,
        captureOf: async (callId) => {
          asked.push(callId);
          return undefined;
        },
      },
    });
    ask = asker(harness);
  });

  afterEach(async () => {
    await harness[Symbol.asyncDispose]();
    await database.clear();
  });

  async function linkToken(appId = 'app-1'): Promise<string> {
    const auth = await token({ appId });
    const { url } = (await ask('POST', '/link', { auth }, {})).json<{ url: string }>();
    expect(url).toMatch(/^https:\/\/calls\.example\.com\/console#token=[\w-]{43}$/);
    return url.replace(/.*=/, '');
  }

  const redeem = (linked: string, headers: Readonly<Record<string, string>> = { origin }) =>
    ask('POST', '/session', headers, { token: linked });

  /** Headers that a signed-in page sends. */
  async function signIn(appId?: string) {
    const answer = await redeem(await linkToken(appId));
    expect(answer.statusCode).toBe(200);
    const cookie = cookieOf(answer);
    const { pageToken } = answer.json<{ pageToken: string }>();
    return { cookie, changing: { cookie, origin, 'x-console-token': pageToken } };
  }

  const calls = '/api/public/calls';

  test('lists calls and sums them up with the cookie, and downloads a CSV file', async () => {
    const { cookie } = await signIn();
    // The address of a download gets what browsers accept for pages.
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';

    const list = await ask('GET', calls, { cookie });
    const file = await ask('GET', `${calls}?format=csv`, { cookie, accept });
    const summary = await ask('GET', `${calls}/summary`, { cookie });

    expect(list.json()).toEqual({ calls: [], searched: {} });
    expect([file.statusCode, summary.statusCode]).toEqual([200, 200]);
    expect(file.body).toMatch(/^acceptedAt,callId,/);
  });

  test('signs in once by a link, at any node', async () => {
    const linked = await linkToken();
    const other = createSessionStore(database, { now: () => now });

    const both = await Promise.all([redeem(linked), other.redeem(linked)]);

    expect([both[0].statusCode === 200, both[1] !== undefined].filter(Boolean)).toHaveLength(1);
    expect((await redeem(linked)).statusCode).toBe(401);
  });

  test('a link is valid for a minute, a session for eight hours', async () => {
    const late = await linkToken();
    const { cookie } = await signIn();
    now = new Date(now.getTime() + minuteMs + 1);
    expect((await redeem(late)).statusCode).toBe(401);
    expect((await ask('GET', calls, { cookie })).statusCode).toBe(200);

    now = new Date(now.getTime() + 8 * 60 * minuteMs);
    expect((await ask('GET', calls, { cookie })).statusCode).toBe(401);
  });

  test('stores neither links nor sessions in a usable form', async () => {
    const linked = await linkToken();
    const { cookie } = await signIn();
    const stored = await database.pool.query(
      'select token_hash from console_links union all select token_hash from console_sessions',
    );
    const text = JSON.stringify(stored.rows);
    expect(stored.rowCount).toBe(2);
    expect(text).not.toContain(linked);
    expect(text).not.toContain(cookie.replace(/.*=/, ''));
  });

  test('limits the cookie to this host over TLS, and hides it from scripts', async () => {
    const answer = await redeem(await linkToken());
    expect(answer.headers['set-cookie']).toMatch(
      /^__Host-offhook=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict; Secure$/,
    );
  });

  test('uses a cookie without Secure on this machine, where there is no TLS', async () => {
    const local = { host: '127.0.0.1:3000', origin: 'http://127.0.0.1:3000' };
    const answer = await redeem(await linkToken(), local);
    expect(answer.headers['set-cookie']).toMatch(/^offhook-console=[\w-]{43}; .*SameSite=Strict$/);
  });

  test.each(['evil.example', '127.0.0.1.evil.example', 'localhost:4444', '10.0.0.1'])(
    'makes links to the configured address, whatever Host is: %j',
    async (host) => {
      const auth = await token();
      const { url } = (await ask('POST', '/link', { auth, host }, {})).json<{ url: string }>();
      expect(new URL(url).origin).toBe(origin);
    },
  );

  test.each<[string, number, string | undefined]>([
    ['0.0.0.0', 200, '127.0.0.1'],
    ['127.0.0.1', 200, '127.0.0.1'],
    ['10.0.0.5', 409, undefined],
  ])(
    'without PUBLIC_URL and on %s, answers a request for a link with %i',
    async (host, status, name) => {
      const appNow = async (appId: string) => known[appId];
      await using local = await startConsole({
        ...{ database, now: () => now, services: {} },
        options: { appNow, address: { publicUrl: undefined, host } },
      });
      await local.server.listen({ host: '127.0.0.1', port: 0 });
      const { port } = local.server.server.address() as AddressInfo;
      const { statusCode, body } = await request(`http://127.0.0.1:${port}/console/link`, {
        method: 'POST',
        headers: { auth: await token(), host: 'evil.example', 'content-type': 'application/json' },
        body: '{}',
      });
      expect(statusCode).toBe(status);
      const text = await body.text();
      expect(text).not.toContain('evil.example');
      expect(text).toContain(
        name === undefined ? 'Set PUBLIC_URL' : `http://${name}:${port}/console#`,
      );
    },
  );

  test.each(['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example:3000'])(
    'does not answer under an invented name: %j',
    async (host) => {
      for (const path of ['', '/session', calls])
        expect((await ask('GET', path, { host })).statusCode).toBe(403);
    },
  );

  test.each([
    ['no origin', { origin: '' }],
    ['another page', { origin: 'https://evil.example' }],
    ['another scheme’s page of the same name', { origin: 'null' }],
    ['no token of the page', { 'x-console-token': '' }],
    ['a wrong one', { 'x-console-token': 'x'.repeat(43) }],
  ])('changes nothing for a request with %s', async (_, headers) => {
    const { changing } = await signIn();
    const callId = 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';
    const path = `/api/public/bot/st-1/calls/${callId}`;

    const answer = await ask('DELETE', path, { ...changing, ...headers });

    expect(answer.statusCode).toBe(403);
    expect(harness.ended).toEqual([]);
  });

  test.each(['cross-site', 'same-site'])(
    'refuses data to a page of another origin (%s), although its requests have the cookie',
    async (site) => {
      const { cookie } = await signIn();
      const headers = { cookie, 'sec-fetch-site': site };
      for (const path of ['/session', calls]) {
        expect((await ask('GET', path, headers)).statusCode).toBe(403);
        expect((await ask('GET', path, { ...headers, 'sec-fetch-site': 'none' })).statusCode).toBe(
          200,
        );
      }
      // Any site may link to the page itself.
      expect((await ask('GET', '', headers)).statusCode).toBe(200);
    },
  );

  describe('a link that a signed-in user opens', () => {
    beforeEach(() => {
      known['app-2'] = app({ appId: 'app-2', accountId: 'other', name: 'another app' });
    });
    const follow = (linked: string, cookie: string, more: object = {}) =>
      ask('POST', '/session', { origin, cookie }, { token: linked, ...more });
    const whoIs = async (cookie: string) =>
      (await ask('GET', '/session', { cookie })).json<{ app?: { appId: string } }>().app?.appId;

    test('changes nothing until the user agrees to give up the session, if it is of another app', async () => {
      const { cookie } = await signIn();
      const linked = await linkToken('app-2');

      const asked = await follow(linked, cookie);
      expect(asked.headers['set-cookie']).toBeUndefined();
      expect(asked.json()).toEqual({
        asks: {
          signedIn: { appId: 'app-1', accountId: 'acme', name: 'an app' },
          link: { appId: 'app-2', accountId: 'other', name: 'another app' },
        },
      });
      expect(await whoIs(cookie)).toBe('app-1');
      // The user agreed to give up the session of another app, so the answer is a question again.
      expect((await follow(linked, cookie, { insteadOf: 'app-384' })).json()).toHaveProperty(
        'asks',
      );

      const changed = await follow(linked, cookie, { insteadOf: 'app-1' });
      expect(await whoIs(cookieOf(changed))).toBe('app-2');
      expect(await whoIs(cookie)).toBeUndefined();
      expect((await follow(linked, cookie)).statusCode).toBe(401);
    });

    test('begins a new session instead of the old one, if it is of the same app', async () => {
      const { cookie } = await signIn();
      const again = await follow(await linkToken(), cookie);
      expect(await whoIs(cookieOf(again))).toBe('app-1');
      expect(await whoIs(cookie)).toBeUndefined();
    });

    test.each(['x', '', 'x'.repeat(43), '"><script>', 'x'.repeat(10_000)])(
      'leaves the session if it is invalid (%j)',
      async (linked) => {
        const { cookie } = await signIn();
        const answer = await follow(linked, cookie);
        expect(answer.statusCode).toBe(401);
        expect(answer.headers['set-cookie']).toBeUndefined();
        expect(await whoIs(cookie)).toBe('app-1');
      },
    );
  });

  test('a session may do what its app may do, and ends with it', async () => {
    const { cookie, changing } = await signIn();
    const body = { target: 'tel:+15551230001', caller: '1' };
    const dialout = (bot: string) =>
      ask('POST', `/api/1.1/public/bot/${bot}/V2/contactcenter/dialout`, changing, {
        botId: bot,
        ...body,
      });
    expect((await dialout('st-1')).statusCode).toBe(200);
    expect(harness.submissions[0]).toMatchObject({ appId: 'app-1', accountId: 'acme' });
    expect((await dialout('st-2')).statusCode).toBe(404);

    known['app-1'] = undefined;
    expect((await ask('GET', calls, { cookie })).statusCode).toBe(401);
  });

  test('only operators may read data about the whole gateway', async () => {
    const { cookie } = await signIn();
    const { cookie: operator } = await signIn('operator');
    for (const name of ['trunks', 'nodes', 'detection']) {
      expect((await ask('GET', `/api/operate/${name}`, { cookie })).statusCode).toBe(404);
      expect((await ask('GET', `/api/operate/${name}`, { cookie: operator })).statusCode).toBe(200);
      expect((await ask('GET', `/api/operate/${name}`)).statusCode).toBe(401);
    }
  });

  test('lists the sandbox numbers for signed-in users', async () => {
    const { cookie } = await signIn();
    const answer = await ask('GET', '/api/sandbox', { cookie });
    expect(answer.json()).toEqual({ numbers: [{ number: '+12025550100', name: 'person' }] });
    expect((await ask('GET', '/api/sandbox')).statusCode).toBe(401);
  });

  test('does not look up SIP and sound of a call that the app may not see', async () => {
    const { cookie } = await signIn();
    for (const file of ['capture', 'export.json', 'sip.pcap']) {
      const path = `/api/calls/call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10/${file}`;
      expect((await ask('GET', path, { cookie })).statusCode).toBe(404);
    }
    expect(asked).toEqual([]);
  });

  test('signing out ends the session for every client with the cookie', async () => {
    const { cookie, changing } = await signIn();
    expect((await ask('DELETE', '/session', { cookie, origin })).statusCode).toBe(403);
    const answer = await ask('DELETE', '/session', changing);
    expect(answer.headers['set-cookie']).toMatch(/Max-Age=0/);
    expect((await ask('GET', calls, { cookie })).statusCode).toBe(401);
  });

  test('a token of the API does not open the console, nor the cookie the API', async () => {
    const { cookie } = await signIn();
    const auth = await token({ appId: 'app-1' });
    expect((await ask('GET', calls, { auth })).statusCode).toBe(401);
    const api = await harness.server.inject({ url: '/api/public/calls', headers: { cookie } });
    expect(api.statusCode).toBe(401);
  });

  test('serves the page also with a trailing slash', async () => {
    const answer = await ask('GET', '/');
    expect(answer.statusCode).toBe(308);
    expect(new URL(String(answer.headers['location']), `${origin}/console/`).pathname).toBe(
      '/console',
    );
  });

  test('serves a page that loads only from the gateway, compressed', async () => {
    const page = await ask('GET', '', { 'accept-encoding': 'gzip, br' });
    expect(page.headers['content-encoding']).toBe('br');
    expect(page.headers['content-security-policy']).toMatch(
      /default-src 'none'; script-src 'self' 'sha256-[^']+'; .*media-src 'self'; .*require-trusted-types-for 'script'/,
    );
    const plain = (await ask('GET', '')).payload;
    // The only thing besides the files: the browser asks at once who is signed in.
    expect(plain).toContain('<link rel="preload" href="console/session" as="fetch" crossorigin>');
    const paths = [...plain.matchAll(/(?:href|src)="([^"#]+)"/g)]
      .map(([, path]) => path ?? '')
      .filter((path) => path !== 'console/session');
    expect(paths.length).toBeGreaterThan(10);
    for (const path of paths) {
      expect(path).toMatch(/^console\/assets\//);
      const asset = await ask('GET', path.replace(/^console/, ''));
      expect([path, asset.statusCode]).toEqual([path, 200]);
      expect(asset.headers['cache-control']).toMatch('immutable');
    }
    expect((await ask('GET', '/assets/../session-store.ts')).statusCode).toBe(404);
  });
});
