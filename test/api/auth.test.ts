// Who may call: one algorithm and one secret for each app.

import { UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  dial,
  type Harness,
  minimal,
  type ProblemDocument,
  startHarness,
  token,
} from './support.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(async () => {
  await harness[Symbol.asyncDispose]();
});

async function answerTo(auth: string, botId = 'st-1') {
  const response = await harness.server.inject({
    method: 'GET',
    url: `/api/public/bot/${botId}/calls`,
    headers: { auth },
  });
  return { status: response.statusCode, problem: response.json<ProblemDocument>(), response };
}

describe('authentication', () => {
  test.each([
    ['the token alone', (jwt: string) => jwt],
    ['the token after Bearer', (jwt: string) => `Bearer ${jwt}`],
    ['the token after bearer', (jwt: string) => `bearer  ${jwt}`],
  ])('the header may hold %s', async (_name, write) => {
    expect((await answerTo(write(await token()))).status).toBe(200);
  });

  test.each(['offhook', 'https://calls.example.com'])('%s is the audience', async (aud) => {
    expect((await answerTo(await token({ appId: 'app-1', aud }))).status).toBe(200);
    expect((await answerTo(await token({ appId: 'app-1', aud: ['x', aud] }))).status).toBe(200);
  });

  test('an app that registered HS384 signs with it', async () => {
    const jwt = await token({ appId: 'app-384' }, { alg: 'HS384' });
    expect((await answerTo(jwt)).status).toBe(200);
  });

  const refusals: readonly [string, () => Promise<string> | string, RegExp][] = [
    ['no token', () => '', /Send a JWT/],
    ['something that is no JWT', () => 'secret', /no JWT/],
    ['three parts of nothing', () => 'a.b.c', /no JWT/],
    [
      'a token without a signature',
      () => new UnsecuredJWT({ appId: 'app-1' }).encode(),
      /not signed/,
    ],
    ['another secret', () => token({ appId: 'app-1' }, { secret: 'x'.repeat(40) }), /signature/],
    ['an unknown app', () => token({ appId: 'app-2' }), /signature/],
    ['an app id that no database takes', () => token({ appId: 'a\u0000' }), /signature/],
    ['no app', () => token({}), /no claim `appId`/],
    ['an app that is a number', () => token({ appId: 7 }), /no claim `appId`/],
    [
      'another algorithm than registered',
      () => token({ appId: 'app-1' }, { alg: 'HS512' }),
      /algorithm/,
    ],
    ['no expiry', () => token({ appId: 'app-1' }, { ttl: '' }), /no claim `exp`/],
    ['an expiry that is over', () => token({ appId: 'app-1' }, { ttl: '-1h' }), /expired/],
    ['another audience', () => token({ appId: 'app-1', aud: 'billing' }), /audience/],
    ['a time to come', () => token({ appId: 'app-1', nbf: 4_102_444_800 }), /not valid yet/],
  ];
  test.each(refusals)('%s is a 401 that says so', async (_name, make, reason) => {
    const { status, problem, response } = await answerTo(await make());

    expect(status).toBe(401);
    expect(problem.detail).toMatch(reason);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="offhook"');
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
  });

  test('an unknown app and a wrong signature read the same', async () => {
    const unknown = await answerTo(await token({ appId: 'nobody' }));
    const wrong = await answerTo(await token({ appId: 'app-1' }, { secret: 'y'.repeat(40) }));

    expect(unknown.problem.detail).toBe(wrong.problem.detail);
  });

  test('the bot of somebody else is a 404, even without the scope', async () => {
    expect((await answerTo(await token(), 'st-2')).status).toBe(404);
    expect((await answerTo(await token({ appId: 'app-without-scope' }), 'st-2')).status).toBe(404);
  });

  test('an app of every bot may use any', async () => {
    expect((await answerTo(await token({ appId: 'app-of-all-bots' }), 'st-2')).status).toBe(200);
  });

  test('a missing scope is a 403 that names it', async () => {
    const { status, problem } = await answerTo(await token({ appId: 'app-without-scope' }));

    expect(status).toBe(403);
    expect(problem.detail).toContain('"Dialout"');
  });

  test('nothing of a body is looked at before the token', async () => {
    const response = await dial(harness, '{', { auth: 'nonsense' });

    expect(response.statusCode).toBe(401);
  });

  test.each([
    ['away', 'ECONNREFUSED'],
    ['too slow', '57014'],
    ['locked', '55P03'],
  ])('a directory that is %s is a 503, not a 401', async (_how, code) => {
    const away = new Error('Failed query', { cause: Object.assign(new Error('no'), { code }) });
    await using broken = await startHarness({
      apps: { find: () => Promise.reject(away), findByApiKey: () => Promise.reject(away) },
    });

    const response = await dial(broken, minimal);

    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('5');
  });
});
