// Tests the admin server, through which the command line reaches a running gateway.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AdminInput } from '../../src/api/admin/admin-operations.ts';
import { createAdminServer } from '../../src/api/admin/admin-server.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { type AppCredentials, createAppStore } from '../../src/store/apps/apps.ts';
import { createBotDirectory } from '../../src/store/apps/bot-directory.ts';
import { createPublishedCalls } from '../../src/store/calls/published-calls.ts';
import { createDataTables } from '../../src/store/data-tables.ts';
import { createNodeDirectory } from '../../src/store/nodes.ts';
import { createRecordingKeys } from '../../src/store/recordings/recording-keys.ts';
import { createReencryption } from '../../src/store/reencryption.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';

let server: ReturnType<typeof createAdminServer>;
const database = forSuite(() => openTestDatabase('pglite'));
beforeAll(async () => {
  const clock = { now: () => new Date() };
  const secrets = createSecretBox(randomBytes(32));
  const apps = createAppStore({
    ...{ database, secrets, clock },
    tokenMaxTtlS: 86_400,
  });
  const bots = createBotDirectory({ database, clock });
  const tables = createDataTables({ database, clock });
  const stores = {
    ...{ apps, bots, tables, secrets },
    nodes: createNodeDirectory(database.pool),
    publishedCalls: createPublishedCalls(database.pool),
    recordingKeys: createRecordingKeys(database.pool, () => new Date()),
    reencryption: createReencryption(database.pool, secrets),
  };
  server = createAdminServer({ stores, key: 'the-key', logger: silentLogger });
});
afterAll(() => server.close());

async function ask(operation: string, payload: object = {}, key = 'the-key') {
  return await server.inject({
    method: 'POST',
    url: `/${operation}`,
    headers: { authorization: `Bearer ${key}` },
    payload,
  });
}

const wanted = { name: 'crm', accountId: 'acme', bots: ['b1'], scopes: ['Dialout'] };
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();

async function create(changes: Partial<AdminInput<'apps.create'>> = {}) {
  return (await ask('apps.create', { ...wanted, ...changes })).json<AppCredentials>();
}

describe('the admin server', () => {
  test.each(['', 'another', 'the-key-and-more'])('refuses the key %j', async (key) => {
    const response = await ask('apps.list', {}, key);

    expect(response.statusCode).toBe(401);
    expect(response.body).not.toContain('appId');
  });

  test('creates an app, lists it without its secrets, and signs tokens for it', async () => {
    const { appId } = await create();

    const listed = await ask('apps.list');
    const token = await ask('apps.token', { appId, ttlS: 60 });

    expect(listed.json<{ apps: object[] }>().apps).toMatchObject([{ appId, ...wanted }]);
    expect(listed.body).not.toMatch(/secret|apiKey|jwtKeys/i);
    const claims = decodeJwt(token.json<{ token: string }>().token);
    expect(claims['appId']).toBe(appId);
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(60);
  });

  test('creates an app with its own key, and cannot sign tokens for it', async () => {
    const created = await create({ jwtAlgorithm: 'EdDSA', publicKeys: pem });

    expect(Object.keys(created)).toEqual([
      ...['appId', 'accountId', 'bots'],
      ...['apiKey', 'webhookSecret', 'streamSecret'],
    ]);
    const token = await ask('apps.token', { appId: created.appId, ttlS: 60 });
    expect(token.statusCode).toBe(400);
    expect(token.body).toContain('private key that only the app has');
  });

  test.each<[string, object, string]>([
    ['an account that breaks a subject', { accountId: 'a.b' }, 'accountId'],
    ['a bot that breaks a subject', { bots: ['*', 'b1'] }, 'bots.0'],
    ['no bots', { bots: [] }, 'bots'],
    ['an unknown scope', { scopes: ['Everything'] }, 'scopes.0'],
    ['an unknown algorithm', { jwtAlgorithm: 'none' }, 'jwtAlgorithm'],
    ['a public key for a shared secret', { publicKeys: pem }, 'publicKeys'],
    ['no public key where one is needed', { jwtAlgorithm: 'RS256' }, 'publicKeys'],
    ['a key of another kind', { jwtAlgorithm: 'RS256', publicKeys: pem }, 'publicKeys'],
    [
      'a private key',
      { jwtAlgorithm: 'EdDSA', publicKeys: JSON.stringify(privateKey.export({ format: 'jwk' })) },
      'publicKeys',
    ],
    ['a misspelt member', { scope: [] }, ''],
  ])('refuses %s', async (_name, changes, path) => {
    const response = await ask('apps.create', { ...wanted, ...changes });

    expect(response.statusCode).toBe(400);
    expect(response.json<{ errors: object[] }>().errors).toMatchObject([{ path }]);
  });

  test('rotates each credential, and revokes an app', async () => {
    const created = await create();
    const { appId } = created;
    const rotate = async (what: string) =>
      (await ask('apps.rotate', { appId, what, graceS: 60 })).json<Record<string, string>>();

    expect((await rotate('api-key'))['apiKey']).toMatch(/^ofk_/);
    expect((await rotate('jwt'))['jwtSecret']).toHaveLength(64);
    const rotated = await rotate('webhook-secret');
    expect(rotated['webhookSecret']).toMatch(/^whsec_/);
    expect(Object.keys(rotated)).toEqual(['appId', 'webhookSecret', 'previousUntil']);

    expect((await ask('apps.revoke', { appId })).statusCode).toBe(200);
    expect((await ask('apps.token', { appId, ttlS: 60 })).statusCode).toBe(404);
    expect((await ask('apps.rotate', { appId, what: 'jwt', graceS: 0 })).statusCode).toBe(404);
  });

  test.each([
    ['for ever', { graceS: 1e9 }, 'graceS'],
    ['backwards', { graceS: -1 }, 'graceS'],
    ['something else', { what: 'name' }, 'what'],
    ['a shared secret to a public key', { publicKeys: pem }, 'publicKeys'],
  ])('does not rotate %s', async (_name, changes, path) => {
    const { appId } = await create();

    const response = await ask('apps.rotate', { appId, what: 'jwt', graceS: 60, ...changes });

    expect(response.statusCode).toBe(400);
    expect(response.json<{ errors: object[] }>().errors).toMatchObject([{ path }]);
  });

  test('registers bots and lists them', async () => {
    const bot = { botId: 'b1', accountId: 'acme', streamId: 'st-1' };

    expect((await ask('bots.add', bot)).json()).toEqual(bot);
    expect((await ask('bots.list')).json()).toEqual({ bots: [bot] });
    const foreign = await ask('bots.add', { ...bot, accountId: 'rival' });
    expect(foreign.statusCode).toBe(400);
    expect(foreign.body).toContain('another account');
  });

  test.each([
    [{ botId: 'a b' }, 'botId'],
    [{ streamId: 'a.b' }, 'streamId'],
    [{ streamId: 'b9' }, 'streamId'],
    [{ iconUrl: 'javascript:alert(1)' }, 'iconUrl'],
    [{ iconUrl: 'logo.png' }, 'iconUrl'],
  ])('refuses a bot with %j', async (changes, path) => {
    const response = await ask('bots.add', { botId: 'b9', accountId: 'acme', ...changes });

    expect(response.statusCode).toBe(400);
    expect(response.json<{ errors: object[] }>().errors).toMatchObject([{ path }]);
  });

  test.each(['apps.token', 'apps.rotate', 'apps.revoke'])(
    '%s of an unknown app is a 404',
    async (operation) => {
      const more = { 'apps.token': { ttlS: 60 }, 'apps.rotate': { what: 'jwt', graceS: 0 } };
      const input = { appId: 'app-x', ...more[operation as 'apps.token'] };

      expect((await ask(operation, input)).statusCode).toBe(404);
    },
  );

  test.each(['apps.delete', 'toString', '__proto__'])(
    '%s is not an operation',
    async (operation) => {
      expect((await ask(operation)).statusCode).toBe(404);
    },
  );
});
