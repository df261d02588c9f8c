// Authentication by token: each app has one algorithm and its keys.

import { createHmac } from 'node:crypto';
import { type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, test, vi } from 'vitest';
import { createAuthenticator } from '../../src/http/auth.ts';
import type { App } from '../../src/store/apps/app-directory.ts';
import { forSuite } from '../support/opened.ts';
import { recordedLogger } from '../support/recorded-logger.ts';
import {
  apps,
  dial,
  minimal,
  type ProblemDocument,
  secret,
  startHarness,
  token,
  unverifiedDetail,
} from './support.ts';

const harness = forSuite(startHarness);

async function answerTo(auth: string, botId = 'st-1') {
  const response = await harness.server.inject({
    method: 'GET',
    url: `/api/public/bot/${botId}/calls`,
    headers: { auth },
  });
  return { status: response.statusCode, problem: response.json<ProblemDocument>(), response };
}

/** Signs a token with exactly these claims. */
async function signed(claims: object): Promise<string> {
  return await new SignJWT(claims as JWTPayload)
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(secret));
}

const expired = (key = secret) => token({ appId: 'app-1' }, { ttl: '-1h', secret: key });

/** JSON has no infinity, but JSON.parse reads this number as Infinity. */
function endless(): Promise<string> {
  const encode = (json: string) => Buffer.from(json).toString('base64url');
  const text = `${encode('{"alg":"HS256"}')}.${encode('{"appId":"app-capped","exp":1e999}')}`;
  return Promise.resolve(
    `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`,
  );
}

/** 32 bytes are 43 characters. Two bits of the last character have no meaning. */
function otherEnd(jwt: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const changed = `${jwt.slice(0, -1)}${alphabet[alphabet.indexOf(jwt.slice(-1)) ^ 1]}`;
  const bytes = (text: string) => Buffer.from(text.split('.')[2] ?? '', 'base64url');
  expect(bytes(changed)).toEqual(bytes(jwt));
  return changed;
}

describe('authentication', () => {
  test.each([
    ['the token alone', (jwt: string) => jwt],
    ['the token after Bearer', (jwt: string) => `Bearer ${jwt}`],
    ['the token after bearer', (jwt: string) => `bearer  ${jwt}`],
  ])('accepts %s in the header', async (_name, write) => {
    expect((await answerTo(write(await token()))).status).toBe(200);
  });

  test.each(['offhook', 'https://calls.example.com'])('accepts the audience %s', async (aud) => {
    expect((await answerTo(await token({ appId: 'app-1', aud }))).status).toBe(200);
    expect((await answerTo(await token({ appId: 'app-1', aud: ['x', aud] }))).status).toBe(200);
  });

  test('accepts HS384 from an app that registered it', async () => {
    const jwt = await token({ appId: 'app-384' }, { alg: 'HS384' });
    expect((await answerTo(jwt)).status).toBe(200);
  });

  const unverified: readonly [string, () => Promise<string> | string][] = [
    ['no token', () => ''],
    ['something that is no JWT', () => 'secret'],
    ['three parts of nothing', () => 'a.b.c'],
    ['a token without a signature', () => new UnsecuredJWT({ appId: 'app-1' }).encode()],
    ['another secret', () => token({ appId: 'app-1' }, { secret: 'x'.repeat(40) })],
    ['another secret, and an end that is over', () => expired('x'.repeat(40))],
    ['an unknown app', () => token({ appId: 'app-2' })],
    ['an app id that no database takes', () => token({ appId: 'a\u0000' })],
    ['no app', () => token({})],
    ['an app that is a number', () => token({ appId: 7 })],
    ['another algorithm than registered', () => token({ appId: 'app-1' }, { alg: 'HS512' })],
    ['an unknown app, by another algorithm', () => token({ appId: 'app-2' }, { alg: 'HS512' })],
    ['a padded signature', async () => `${await token()}=`],
    ['a signature that ends otherwise, and decodes alike', async () => otherEnd(await token())],
    [
      'a claims part of the other base64 alphabet',
      () =>
        token({ appId: 'app-1', x: '>>>???' }).then((jwt) =>
          jwt.replaceAll('-', '+').replaceAll('_', '/'),
        ),
    ],
  ];
  test.each(unverified)('%s is a 401 with the same detail as any other', async (_name, make) => {
    const { status, problem, response } = await answerTo(await make());
    const { requestId, ...body } = problem;

    expect(status).toBe(401);
    expect(requestId).toBe(response.headers['x-request-id']);
    expect(body).toEqual({
      type: 'urn:offhook:problem:unauthorized',
      title: 'Credentials are missing or not valid',
      status: 401,
      detail: unverifiedDetail,
    });
    expect(response.headers['www-authenticate']).toBe('Bearer realm="offhook"');
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
  });

  const nowS = () => Math.floor(Date.now() / 1_000);
  const capped = (claims: object) => signed({ appId: 'app-capped', ...claims });
  const refusals: readonly [string, () => Promise<string>, RegExp][] = [
    ['no expiry', () => token({ appId: 'app-1' }, { ttl: '' }), /no claim `exp`/],
    ['an expiry that is over', () => expired(), /expired \(claim `exp`\)/],
    ['an expiry that never comes', () => endless(), /claim `exp` is not valid/],
    ['another audience', () => token({ appId: 'app-1', aud: 'billing' }), /claim `aud` names/],
    [
      'a time to come',
      () => token({ appId: 'app-1', nbf: 4_102_444_800 }),
      /not valid yet \(claim `nbf`\)/,
    ],
    [
      'an issue time to come',
      () => signed({ appId: 'app-1', iat: nowS() + 60, exp: nowS() + 120 }),
      /claim `iat` is in the future/,
    ],
    [
      'an issue time that is no time',
      () => signed({ appId: 'app-1', iat: 'now', exp: nowS() + 120 }),
      /claim `iat` is not valid/,
    ],
    [
      'a longer life than tokens of its app may have',
      () => capped({ iat: nowS(), exp: nowS() + 86_401 }),
      /claim `exp` is too late: tokens of this app may live for 86400 s/,
    ],
    [
      'a longer life, most of it over',
      () => capped({ iat: nowS() - 86_000, exp: nowS() + 600 }),
      /claim `exp` is too late/,
    ],
    [
      'no issue time, and an end after longer than it may live',
      () => capped({ exp: nowS() + 90_000 }),
      /claim `exp` is too late/,
    ],
  ];
  test.each(refusals)(
    '%s is a 401 that names the claim, once the signature is verified',
    async (_name, make, reason) => {
      const { status, problem, response } = await answerTo(await make());

      expect(status).toBe(401);
      expect(problem.detail).toMatch(reason);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="offhook"');
    },
  );

  test.each<[string, object]>([
    ['as long as allowed', { iat: nowS() - 60, exp: nowS() + 86_340 }],
    ['not longer than that from now, without `iat`', { exp: nowS() + 86_400 }],
    ['shortly, issued by a clock that is ahead', { iat: nowS() + 20, exp: nowS() + 60 }],
  ])('accepts tokens of an app with a maximum lifetime that live %s', async (_how, claims) => {
    expect((await answerTo(await capped(claims))).status).toBe(200);
  });

  test('accepts tokens of any lifetime from an app without a maximum', async () => {
    const auth = await signed({ appId: 'app-1', iat: 1, exp: 4_102_444_800 });

    expect((await answerTo(auth)).status).toBe(200);
  });

  test('warns once about each app without a maximum lifetime, when it accepts a token', async () => {
    const { logger, lines } = recordedLogger();
    const authenticator = createAuthenticator(
      { find: async (appId) => apps[appId], findByApiKey: async () => undefined },
      { audiences: ['offhook'], logger },
    );

    await expect(authenticator.jwt({ auth: await expired() })).rejects.toThrow('expired');
    for (const appId of ['app-1', 'app-capped', 'app-1', 'app-of-all-bots']) {
      await authenticator.jwt({ auth: await token({ appId }) });
    }

    expect(lines.map(({ appId, msg }) => [appId, msg])).toEqual(
      ['app-1', 'app-of-all-bots'].map((appId) => [
        appId,
        expect.stringContaining('offhook apps limit <appId> --token-ttl 24h') as string,
      ]),
    );
  });

  test.each<[string, () => typeof apps]>([
    ['was revoked', () => ({})],
    ['got another secret', () => ({ 'app-1': { ...apps['app-1'], jwtKeys: ['y'.repeat(40)] } })],
  ])('no longer accepts a token after its app %s', async (_how, later) => {
    let directory: Readonly<Record<string, App | undefined>> = apps;
    const authenticator = createAuthenticator(
      { find: async (appId) => directory[appId], findByApiKey: async () => undefined },
      { audiences: ['offhook'], logger: recordedLogger().logger },
    );
    const auth = await token();
    expect((await authenticator.jwt({ auth })).app.appId).toBe('app-1');
    expect((await authenticator.jwt({ auth })).app.appId).toBe('app-1');

    directory = later();

    await expect(authenticator.jwt({ auth })).rejects.toThrow(unverifiedDetail);
  });

  test('no longer accepts a token after it has expired', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      const auth = await signed({ appId: 'app-1', exp: nowS() + 120 });
      expect((await answerTo(auth)).status).toBe(200);
      vi.setSystemTime(Date.now() + 149_000);
      expect((await answerTo(auth)).status).toBe(200);
      vi.setSystemTime(Date.now() + 2_000);

      const { status, problem } = await answerTo(auth);
      expect(status).toBe(401);
      expect(problem.detail).toMatch(/expired/);
    } finally {
      vi.useRealTimers();
    }
  });

  test('answers 404 for the bot of another account, even without the scope', async () => {
    expect((await answerTo(await token(), 'st-2')).status).toBe(404);
    expect((await answerTo(await token({ appId: 'app-without-scope' }), 'st-2')).status).toBe(404);
  });

  test('lets an app with all bots use any bot', async () => {
    expect((await answerTo(await token({ appId: 'app-of-all-bots' }), 'st-2')).status).toBe(200);
  });

  test('answers a missing scope with a 403 that names it', async () => {
    const { status, problem } = await answerTo(await token({ appId: 'app-without-scope' }));

    expect(status).toBe(403);
    expect(problem.detail).toContain('"Dialout"');
  });

  test('checks the token before it reads the body', async () => {
    const response = await dial(harness, '{', { auth: 'nonsense' });

    expect(response.statusCode).toBe(401);
  });

  test.each([
    ['away', 'ECONNREFUSED'],
    ['too slow', '57014'],
    ['locked', '55P03'],
  ])('answers 503, not 401, if the directory is %s', async (_how, code) => {
    const away = new Error('Failed query', { cause: Object.assign(new Error('no'), { code }) });
    await using broken = await startHarness({
      apps: { find: () => Promise.reject(away), findByApiKey: () => Promise.reject(away) },
    });

    const response = await dial(broken, minimal);

    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('5');
  });
});
