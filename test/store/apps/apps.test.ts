import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashApiKey } from '../../../src/store/apps/app-credentials.ts';
import type { Scope } from '../../../src/store/apps/app-directory.ts';
import { scopes } from '../../../src/store/apps/app-directory.ts';
import { type AppStore, createAppStore } from '../../../src/store/apps/apps.ts';
import { ensureDevApp } from '../../../src/store/apps/dev-app.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { forSuite } from '../../support/opened.ts';
import { rowsIn } from '../../support/tables.ts';

const noon = new Date('2026-03-01T12:00:00.000Z');
const dialer = {
  name: 'dialer',
  accountId: 'account-1',
  bots: ['bot-1', 'bot-2'],
  scopes: ['Dialout'] satisfies Scope[],
};

describe.each(databaseKinds)('apps on %s', (kind) => {
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  let now: Date;
  let apps: AppStore;

  const openApps = (): AppStore =>
    createAppStore({ database, secrets, clock: { now: () => now }, tokenMaxTtlS: 86_400 });

  const database = forSuite(() => openTestDatabase(kind));

  beforeEach(() => {
    now = noon;
    apps = openApps();
  });

  afterEach(() => database.clear());

  test('are created with separate credentials', async () => {
    const [one, other] = await Promise.all([apps.createApp(dialer), apps.createApp(dialer)]);

    expect(one).toMatchObject({ accountId: 'account-1', bots: ['bot-1', 'bot-2'] });
    expect(one.appId).toMatch(/^app-[0-9a-f-]{36}$/);
    expect(one.webhookSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(one.jwtSecret.length).toBe(64);
    for (const key of ['appId', 'apiKey', 'jwtSecret', 'webhookSecret', 'streamSecret'] as const)
      expect(one[key]).not.toBe(other[key]);
  });

  test('are found with their keys and secrets', async () => {
    const created = await apps.createApp(dialer);

    expect(await apps.find(created.appId)).toEqual({
      ...dialer,
      appId: created.appId,
      jwtAlgorithm: 'HS256',
      jwtKeys: [created.jwtSecret],
      apiKeyIds: [hashApiKey(created.apiKey)],
      streamSecrets: [created.streamSecret],
      tokenMaxTtlS: 86_400,
      createdAt: noon,
    });
    expect(await apps.webhookSecrets(created.appId)).toEqual([created.webhookSecret]);
    expect(await apps.find('app-unknown')).toBeUndefined();
    expect(await apps.webhookSecrets('app-unknown')).toEqual([]);
  });

  test('are listed without their secrets', async () => {
    const created = await apps.createApp(dialer);

    expect(await apps.list()).toEqual([
      {
        ...dialer,
        appId: created.appId,
        jwtAlgorithm: 'HS256',
        tokenMaxTtlS: 86_400,
        createdAt: noon,
      },
    ]);
  });

  test('store no secret in plain text', async () => {
    const created = await apps.createApp(dialer);

    const rows = JSON.stringify([
      ...(await rowsIn(database.pool, 'apps')),
      ...(await rowsIn(database.pool, 'webhook_secrets')),
    ]);

    const hex = (text: string) => Buffer.from(text).toString('hex');
    const bytes = (text: string) => JSON.stringify([...Buffer.from(text)]).slice(1, -1);
    for (const secret of [
      created.apiKey,
      created.jwtSecret,
      created.webhookSecret,
      created.streamSecret,
    ]) {
      expect(rows).not.toContain(secret);
      expect(rows).not.toContain(hex(secret));
      expect(rows).not.toContain(bytes(secret));
    }
    expect(rows).toContain(hashApiKey(created.apiKey));
  });

  test('are accepted for seconds after they were revoked, and no longer', async () => {
    const created = await apps.createApp(dialer);
    await apps.find(created.appId);
    await database.pool.query('update apps set revoked_at = $1', [noon]);

    expect(await apps.find(created.appId)).toBeDefined();
    now = new Date(noon.getTime() + 5_000);
    expect(await apps.find(created.appId)).toBeUndefined();
  });

  test('sign with every secret that has not expired, the newest first', async () => {
    const { appId, webhookSecret } = await apps.createApp(dialer);
    const add = async (secretId: string, createdAt: Date, expiresAt: Date): Promise<void> => {
      const secret = secrets.seal('webhook-secret', secretId, `whsec_${secretId}`);
      await database.pool.query('insert into webhook_secrets values ($1, $2, $3, $4, $5)', [
        ...[secretId, appId, secret],
        ...[createdAt, expiresAt],
      ]);
    };
    const later = new Date(noon.getTime() + 3_600_000);
    await add('newer', new Date(noon.getTime() + 1), later);
    await add('expired', new Date(noon.getTime() - 1), noon);

    expect(await apps.webhookSecrets(appId)).toEqual(['whsec_newer', webhookSecret]);
  });

  test.each([
    ['an account that would break a subject', { ...dialer, accountId: 'a.b' }],
    ['a bot that would break a subject', { ...dialer, bots: ['bot 1'] }],
    ['every bot and another one', { ...dialer, bots: ['*', 'bot-1'] }],
    ['no bot', { ...dialer, bots: [] }],
  ])('are refused with %s', async (_, app) => {
    await expect(apps.createApp(app)).rejects.toThrow();
    expect(await apps.list()).toEqual([]);
  });

  describe('the dev app', () => {
    const path = (): string => join(database.location.dataDir, 'dev-app.json');
    const ensure = () => ensureDevApp(openApps(), database.location.dataDir);
    const fileContent = async (): Promise<unknown> => JSON.parse(await readFile(path(), 'utf8'));

    beforeEach(async () => {
      await rm(path(), { force: true });
    });

    test('may do everything, and its credentials are in a private file', async () => {
      const credentials = await ensure();

      expect(await fileContent()).toEqual(credentials);
      expect(Object.keys(credentials)).toEqual([
        'appId',
        'accountId',
        'bots',
        'apiKey',
        'jwtSecret',
        'webhookSecret',
        'streamSecret',
      ]);
      expect((await stat(path())).mode & 0o777).toBe(0o600);
      expect(await openApps().find(credentials.appId)).toMatchObject({
        name: 'dev',
        accountId: 'dev',
        bots: ['*'],
        scopes,
        jwtKeys: [credentials.jwtSecret],
      });
      expect(await readdir(database.location.dataDir)).not.toContainEqual(
        expect.stringMatching(/dev-app\.json\../),
      );
    });

    test('is the same at every start', async () => {
      const first = await ensure();

      expect(await ensure()).toEqual(first);
      expect(await openApps().list()).toHaveLength(1);
    });

    test.each([
      ['lost', () => rm(path())],
      ['damaged', () => writeFile(path(), '{"appId":')],
    ])('writes a %s file again, with a new API key', async (_, damage) => {
      const first = await ensure();
      await damage();

      const second = await ensure();

      expect(second).toEqual({ ...first, apiKey: second.apiKey });
      expect(second.apiKey).not.toBe(first.apiKey);
      expect(await fileContent()).toEqual(second);
      expect((await openApps().load(second.appId))?.apiKeyHash).toBe(hashApiKey(second.apiKey));
    });

    test('is created again from the file if the database is new', async () => {
      const first = await ensure();
      await database.clear();

      expect(await ensure()).toEqual(first);
      expect(await openApps().find(first.appId)).toMatchObject({ jwtKeys: [first.jwtSecret] });
      expect(await openApps().webhookSecrets(first.appId)).toEqual([first.webhookSecret]);
    });

    test('corrects a file that contradicts the database', async () => {
      const first = await ensure();
      await writeFile(path(), JSON.stringify({ ...first, jwtSecret: 'another' }));

      expect(await ensure()).toEqual(first);
      expect(await fileContent()).toEqual(first);
    });
  });
});
