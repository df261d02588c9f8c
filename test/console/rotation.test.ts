// Sessions, links and event streams end with the credentials that opened them, at every node.

import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Rotation } from '../../src/store/apps/app-rotation.ts';
import { type AppStore, createAppStore } from '../../src/store/apps/apps.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import type { Harness } from '../api/support.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { asker, cookieOf, origin, startConsole } from './support.ts';

const graceS = 30;
/** Time after which every node knows a new key. */
const rememberedS = 6;
const newApp = { name: 'dialer', accountId: 'acme', bots: ['*'], scopes: ['Dialout'] as const };

describe.each(databaseKinds)('a console whose credentials are replaced, on %s', (kind) => {
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  let database: TestDatabase;
  let now: Date;
  /** The node that gets the requests, and the node on which an operator's command runs. */
  let here: AppStore;
  let there: AppStore;
  let harness: Harness;
  let ask: ReturnType<typeof asker>;

  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(async () => {
    await database.remove();
  });
  beforeEach(async () => {
    // Tokens are checked against the clock of the machine.
    now = new Date();
    const openApps = () =>
      createAppStore({
        ...{ database, secrets, tokenMaxTtlS: 86_400 },
        clock: { now: () => now },
      });
    [here, there] = [openApps(), openApps()];
    harness = await startConsole({
      database,
      now: () => now,
      services: { apps: here, live: { follow: untilAborted } },
      options: { appNow: (appId) => here.findNow(appId), streamCheckEveryMs: 50 },
    });
    ask = asker(harness);
  });
  afterEach(async () => {
    await harness[Symbol.asyncDispose]();
    await database.clear();
  });

  const later = (seconds: number): void => {
    now = new Date(now.getTime() + seconds * 1_000);
  };
  const rotate = async (appId: string, what: Rotation['what'], more: Partial<Rotation> = {}) => {
    const result = await there.rotate(appId, { what, graceS, ...more });
    if (result.kind !== 'rotated') throw new Error(result.kind);
    return result.rotated;
  };

  async function link(appId: string, jwtSecret: string): Promise<string> {
    const auth = await new SignJWT({ appId })
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(jwtSecret));
    return await linkBy(auth);
  }
  async function linkBy(auth: string): Promise<string> {
    const answer = await ask('POST', '/link', { auth }, {});
    expect(answer.statusCode).toBe(200);
    return answer.json<{ url: string }>().url.replace(/.*=/, '');
  }
  const redeem = (token: string) => ask('POST', '/session', { origin }, { token });
  const signIn = async (appId: string, jwtSecret: string) =>
    cookieOf(await redeem(await link(appId, jwtSecret)));
  const statusFor = async (cookie: string) =>
    (await ask('GET', '/api/public/calls', { cookie })).statusCode;

  test.each(['jwt', 'api-key'] as const)(
    'ends sessions and links at once after a rotation of %s without a grace time',
    async (what) => {
      const { appId, jwtSecret } = await there.createApp(newApp);
      const cookie = await signIn(appId, jwtSecret);
      const linked = await link(appId, jwtSecret);
      expect(await statusFor(cookie)).toBe(200);

      await rotate(appId, what, { graceS: 0 });

      expect(await statusFor(cookie)).toBe(401);
      expect((await ask('GET', '/session', { cookie })).statusCode).toBe(401);
      expect((await redeem(linked)).statusCode).toBe(401);
    },
  );

  test.each(['jwt', 'api-key'] as const)(
    'ends sessions and links of the old %s after the grace time, and keeps those of the new one',
    async (what) => {
      const { appId, jwtSecret: former } = await there.createApp(newApp);
      const cookie = await signIn(appId, former);
      const { jwtSecret = former } = await rotate(appId, what);
      later(rememberedS);
      const newer = await signIn(appId, jwtSecret);
      later(graceS - rememberedS - 1);
      const linked = await link(appId, jwtSecret);
      const oldLink = what === 'jwt' ? await link(appId, former) : undefined;
      expect(await statusFor(cookie)).toBe(200);

      later(1);

      expect(await statusFor(cookie)).toBe(401);
      expect(await statusFor(newer)).toBe(200);
      if (oldLink !== undefined) expect((await redeem(oldLink)).statusCode).toBe(401);
      expect((await redeem(linked)).statusCode).toBe(200);
    },
  );

  test('ends a session that the former key opened during the grace time with that time', async () => {
    const { appId, jwtSecret } = await there.createApp(newApp);
    await rotate(appId, 'jwt');
    const cookie = await signIn(appId, jwtSecret);
    expect(await statusFor(cookie)).toBe(200);
    later(graceS);
    expect(await statusFor(cookie)).toBe(401);
  });

  test('ends sessions of the oldest key at once after a forced rotation', async () => {
    const { appId, jwtSecret: first } = await there.createApp(newApp);
    const oldest = await signIn(appId, first);
    const { jwtSecret: second = '' } = await rotate(appId, 'jwt');
    later(rememberedS);
    const middle = await signIn(appId, second);
    await rotate(appId, 'jwt', { force: true });
    expect([await statusFor(oldest), await statusFor(middle)]).toEqual([401, 200]);
  });

  test('ends sessions of a public key that was replaced', async () => {
    const pair = generateKeyPairSync('ed25519');
    const pem = (key: typeof pair.publicKey) =>
      key.export({ type: 'spki', format: 'pem' }).toString();
    const keys = { algorithm: 'EdDSA', keys: pem(pair.publicKey) } as const;
    const { appId } = await there.createAppWithKeys(newApp, keys);
    const auth = await new SignJWT({ appId })
      .setProtectedHeader({ alg: 'EdDSA' })
      .setExpirationTime('1h')
      .sign(pair.privateKey);
    const cookie = cookieOf(await redeem(await linkBy(auth)));
    expect(await statusFor(cookie)).toBe(200);
    const publicKeys = pem(generateKeyPairSync('ed25519').publicKey);
    await rotate(appId, 'jwt', { graceS: 0, publicKeys });
    expect(await statusFor(cookie)).toBe(401);
  });

  test('keeps sessions after a rotation of other credentials, and ends those of a revoked app at once', async () => {
    const [one, other] = [await there.createApp(newApp), await there.createApp(newApp)];
    const cookie = await signIn(one.appId, one.jwtSecret);
    await rotate(one.appId, 'webhook-secret', { graceS: 0 });
    await rotate(one.appId, 'stream', { graceS: 0 });
    await rotate(other.appId, 'jwt', { graceS: 0 });
    await there.revoke(other.appId);
    expect(await statusFor(cookie)).toBe(200);
    await there.revoke(one.appId);
    expect(await statusFor(cookie)).toBe(401);
  });

  test('makes no link for a key that was just replaced at another node', async () => {
    const { appId, jwtSecret } = await there.createApp(newApp);
    const auth = await new SignJWT({ appId })
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(jwtSecret));
    await linkBy(auth);
    await rotate(appId, 'jwt', { graceS: 0 });
    expect((await ask('POST', '/link', { auth }, {})).statusCode).toBe(401);
  });

  test.each([
    ['its key is replaced', (appId: string) => rotate(appId, 'jwt', { graceS: 0 })],
    ['its API key is replaced', (appId: string) => rotate(appId, 'api-key', { graceS: 0 })],
    ['the user signs out', signOut],
  ])('ends an event stream when %s', async (_when, end) => {
    const { appId, jwtSecret } = await there.createApp(newApp);
    const cookie = await signIn(appId, jwtSecret);
    await harness.server.listen({ host: '127.0.0.1', port: 0 });
    const { port } = harness.server.server.address() as AddressInfo;
    // Another cookie name with the same session.
    const headers = { cookie: cookie.replace('__Host-offhook', 'offhook-console') };
    const url = `http://127.0.0.1:${port}/console/api/public/events`;
    const stream = await fetch(url, { headers });
    expect(stream.status).toBe(200);

    await end(appId, cookie);

    // Waits until the stream ends.
    await stream.text();
    expect((await fetch(url, { headers })).status).toBe(401);
  });

  async function signOut(_appId: string, cookie: string): Promise<void> {
    const { pageToken } = (await ask('GET', '/session', { cookie })).json<{ pageToken: string }>();
    const headers = { cookie, origin, 'x-console-token': pageToken };
    expect((await ask('DELETE', '/session', headers)).statusCode).toBe(200);
  }
});

/** A log of events in which nothing happens. */
async function* untilAborted(_scope: unknown, _cursor: unknown, how: { signal: AbortSignal }) {
  yield [{ text: ': begins\n\n' }];
  await new Promise((resolve) => how.signal.addEventListener('abort', resolve, { once: true }));
}
