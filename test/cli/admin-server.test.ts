// The side door of the command line.

import { randomBytes } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAdminServer } from '../../src/api/admin-server.ts';
import type { ApiInstance } from '../../src/api/http.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createAppStore } from '../../src/store/apps.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { openTestDatabase, type TestDatabase } from '../support/databases.ts';

let database: TestDatabase;
let server: ApiInstance;
beforeAll(async () => {
  database = await openTestDatabase('pglite');
  const apps = createAppStore({
    database,
    secrets: createSecretBox(randomBytes(32)),
    clock: { now: () => new Date() },
  });
  server = createAdminServer({ apps, key: 'the-key', logger: silentLogger });
});
afterAll(async () => {
  await server.close();
  await database.remove();
});

async function ask(method: 'GET' | 'POST', url: string, payload?: object, key = 'the-key') {
  return await server.inject({
    method,
    url,
    headers: { authorization: `Bearer ${key}` },
    ...(payload === undefined ? {} : { payload }),
  });
}

const wanted = { name: 'crm', accountId: 'acme', bots: ['b1'], scopes: ['Dialout'] };

describe('the admin server', () => {
  test.each(['', 'another', 'the-key-and-more'])('refuses the key %j', async (key) => {
    const response = await ask('GET', '/apps', undefined, key);

    expect(response.statusCode).toBe(401);
    expect(response.body).not.toContain('appId');
  });

  test('makes an app, lists it without its secrets, and signs tokens for it', async () => {
    const created = (await ask('POST', '/apps', wanted)).json<{ appId: string }>();

    const listed = await ask('GET', '/apps');
    const token = await ask('POST', `/apps/${created.appId}/token`, { ttlS: 60 });

    expect(listed.json<{ apps: object[] }>().apps).toMatchObject([
      { appId: created.appId, ...wanted },
    ]);
    expect(listed.body).not.toMatch(/secret|apiKey/i);
    const claims = decodeJwt(token.json<{ token: string }>().token);
    expect(claims['appId']).toBe(created.appId);
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(60);
  });

  test.each<[string, object]>([
    ['an account that breaks a subject', { ...wanted, accountId: 'a.b' }],
    ['a bot that breaks a subject', { ...wanted, bots: ['*', 'b1'] }],
    ['no bots', { ...wanted, bots: [] }],
    ['an unknown scope', { ...wanted, scopes: ['Everything'] }],
  ])('refuses %s', async (_name, body) => {
    expect((await ask('POST', '/apps', body)).statusCode).toBe(400);
  });

  test('an unknown app has no token', async () => {
    expect((await ask('POST', '/apps/app-x/token', { ttlS: 60 })).statusCode).toBe(404);
  });
});
