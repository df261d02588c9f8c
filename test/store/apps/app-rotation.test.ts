// Credentials change while they are in use: the former credential stays valid for its grace period,
// and no longer.

import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Rotation } from '../../../src/store/apps/app-rotation.ts';
import { type AppStore, createAppStore } from '../../../src/store/apps/apps.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { forSuite } from '../../support/opened.ts';
import { rowsIn } from '../../support/tables.ts';

const noon = Date.parse('2026-03-01T12:00:00.000Z');
const dialer = { name: 'dialer', accountId: 'acme', bots: ['*'], scopes: [] };
const publicKey = (): string =>
  generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();

describe.each(databaseKinds)('rotation on %s', (kind) => {
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  let nowMs: number;
  let apps: AppStore;
  /** Opens the apps as another process does. */
  const openApps = (): AppStore =>
    createAppStore({
      ...{ database, secrets, tokenMaxTtlS: 86_400 },
      clock: { now: () => new Date(nowMs) },
    });

  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(() => {
    nowMs = noon;
    apps = openApps();
  });
  afterEach(() => database.pool.query('delete from apps; delete from webhook_secrets'));

  async function rotate(
    appId: string,
    what: Rotation['what'],
    { graceS = 60, force = false }: Partial<Pick<Rotation, 'graceS' | 'force'>> = {},
  ) {
    const result = await apps.rotate(appId, { what, graceS, force });
    if (result.kind !== 'rotated') throw new Error(result.kind);
    return result.rotated;
  }
  const ownerOf = async (apiKey: string) => (await apps.findByApiKey(apiKey))?.appId;

  test('an app is found by its API key', async () => {
    const [one, other] = [await apps.createApp(dialer), await apps.createApp(dialer)];

    expect(await ownerOf(one.apiKey)).toBe(one.appId);
    expect(await ownerOf(other.apiKey)).toBe(other.appId);
    expect(await apps.findByApiKey(one.apiKey)).toEqual(await apps.find(one.appId));
    for (const nothing of ['', 'ofk_', one.appId, `${one.apiKey}x`, `ofk_${'x'.repeat(43)}`]) {
      expect(await ownerOf(nothing)).toBeUndefined();
    }
  });

  test('of an API key leaves two valid until the grace period ends', async () => {
    const { appId, apiKey: first } = await apps.createApp(dialer);
    const { apiKey: second = '', previousUntil } = await rotate(appId, 'api-key');

    expect(previousUntil).toEqual(new Date(noon + 60_000));
    expect(second).toMatch(/^ofk_[A-Za-z0-9_-]{43}$/);
    expect([await ownerOf(first), await ownerOf(second)]).toEqual([appId, appId]);
    nowMs += 60_000;
    expect([await ownerOf(first), await ownerOf(second)]).toEqual([undefined, appId]);
  });

  test('of a JWT secret leaves two valid, the newest first', async () => {
    const { appId, jwtSecret: first } = await apps.createApp(dialer);
    const { jwtSecret: second = '' } = await rotate(appId, 'jwt');

    expect((await apps.find(appId))?.jwtKeys).toEqual([second, first]);
    nowMs += 60_000;
    expect((await apps.find(appId))?.jwtKeys).toEqual([second]);
  });

  test('of a webhook secret leaves two that sign, the newest first', async () => {
    const { appId, webhookSecret: first } = await apps.createApp(dialer);
    nowMs += 1;
    const { webhookSecret: second } = await rotate(appId, 'webhook-secret');

    expect(await apps.webhookSecrets(appId)).toEqual([second, first]);
    nowMs += 60_000;
    expect(await apps.webhookSecrets(appId)).toEqual([second]);
  });

  test('of public keys stores the given keys', async () => {
    const { appId } = await apps.createAppWithKeys(dialer, {
      algorithm: 'EdDSA',
      keys: publicKey(),
    });
    const before = (await apps.find(appId))?.jwtKeys[0];

    const result = await apps.rotate(appId, { what: 'jwt', graceS: 60, publicKeys: publicKey() });

    expect(result).toEqual({
      kind: 'rotated',
      rotated: { appId, previousUntil: new Date(noon + 60_000) },
    });
    const after = (await apps.find(appId))?.jwtKeys;
    expect(after).toHaveLength(2);
    expect(after?.[1]).toBe(before);
    expect(after?.[0]).not.toBe(before);
  });

  test.each<Rotation['what']>(['api-key', 'jwt', 'webhook-secret'])(
    'of the %s without a grace period ends the former credential immediately',
    async (what) => {
      const first = await apps.createApp(dialer);
      const second = { ...first, ...(await rotate(first.appId, what, { graceS: 0 })) };

      expect(await ownerOf(second.apiKey)).toBe(first.appId);
      expect((await apps.find(first.appId))?.jwtKeys).toEqual([second.jwtSecret]);
      expect(await apps.webhookSecrets(first.appId)).toEqual([second.webhookSecret]);
      if (what === 'api-key') expect(await ownerOf(first.apiKey)).toBeUndefined();
    },
  );

  test.each<Rotation['what']>(['api-key', 'jwt', 'webhook-secret'])(
    'of the %s is refused while the former credential is in its grace period',
    async (what) => {
      const { appId } = await apps.createApp(dialer);
      await rotate(appId, what);
      const before = [
        await rowsIn(database.pool, 'apps'),
        await rowsIn(database.pool, 'webhook_secrets'),
      ];
      nowMs += 59_999;

      for (const graceS of [60, 0]) {
        expect(await apps.rotate(appId, { what, graceS })).toEqual({
          kind: 'in-grace',
          until: new Date(noon + 60_000),
        });
      }

      expect([
        await rowsIn(database.pool, 'apps'),
        await rowsIn(database.pool, 'webhook_secrets'),
      ]).toEqual(before);
      nowMs += 1;
      expect(await apps.rotate(appId, { what, graceS: 60 })).toMatchObject({ kind: 'rotated' });
    },
  );

  test('of one credential does not wait for the grace period of another', async () => {
    const { appId } = await apps.createApp(dialer);

    for (const what of ['api-key', 'jwt', 'webhook-secret'] as const) await rotate(appId, what);
  });

  test('by force within a grace period leaves two valid, and ends the oldest', async () => {
    const first = await apps.createApp(dialer);
    const { appId } = first;
    const all = [first];
    for (const _again of [1, 2]) {
      nowMs += 1;
      const key = await rotate(appId, 'api-key', { force: true });
      const jwt = await rotate(appId, 'jwt', { force: true });
      const webhook = await rotate(appId, 'webhook-secret', { force: true });
      all.push({ ...first, ...key, ...jwt, ...webhook });
    }

    const [, second, third] = all;
    expect(await Promise.all(all.map(({ apiKey }) => ownerOf(apiKey)))).toEqual([
      undefined,
      appId,
      appId,
    ]);
    expect((await apps.find(appId))?.jwtKeys).toEqual([third?.jwtSecret, second?.jwtSecret]);
    expect(await apps.webhookSecrets(appId)).toEqual([third?.webhookSecret, second?.webhookSecret]);
  });

  test('by two concurrent processes happens once', async () => {
    const { appId, apiKey } = await apps.createApp(dialer);
    nowMs += 1;

    const results = await Promise.all(
      [0, 1].flatMap(() => [
        openApps().rotate(appId, { what: 'webhook-secret', graceS: 60 }),
        openApps().rotate(appId, { what: 'api-key', graceS: 60 }),
      ]),
    );

    expect(results.map(({ kind: is }) => is).toSorted()).toEqual([
      ...['in-grace', 'in-grace'],
      ...['rotated', 'rotated'],
    ]);
    expect(await apps.webhookSecrets(appId)).toHaveLength(2);
    expect(await ownerOf(apiKey)).toBe(appId);
  });

  test('by two concurrent processes, forced, leaves two valid', async () => {
    const { appId, apiKey } = await apps.createApp(dialer);
    nowMs += 1;

    const results = await Promise.all(
      [0, 1].flatMap(() => [
        openApps().rotate(appId, { what: 'webhook-secret', graceS: 60, force: true }),
        openApps().rotate(appId, { what: 'api-key', graceS: 60, force: true }),
      ]),
    );

    expect(await apps.webhookSecrets(appId)).toHaveLength(2);
    const keys = results.flatMap((result) =>
      result.kind === 'rotated' ? (result.rotated.apiKey ?? []) : [],
    );
    expect(await Promise.all(keys.map(ownerOf))).toEqual([appId, appId]);
    expect(await ownerOf(apiKey)).toBeUndefined();
  });

  test('is refused if the key does not fit the app, and nothing changes', async () => {
    const shared = await apps.createApp(dialer);
    const { appId } = await apps.createAppWithKeys(dialer, {
      algorithm: 'EdDSA',
      keys: publicKey(),
    });
    const before = await rowsIn(database.pool, 'apps');

    for (const [of, publicKeys, reason] of [
      [shared.appId, publicKey(), /HS256: it has no public key/],
      [appId, undefined, /EdDSA: give its new public key/],
      [appId, 'nonsense', /not a public key in PEM/],
    ] as const) {
      const result = await apps.rotate(of, {
        what: 'jwt',
        graceS: 60,
        ...(publicKeys === undefined ? {} : { publicKeys }),
      });
      expect(result).toEqual({
        kind: 'refused',
        message: expect.stringMatching(reason) as string,
      });
    }
    expect(await apps.rotate('app-x', { what: 'jwt', graceS: 60 })).toEqual({ kind: 'unknown' });
    expect(await rowsIn(database.pool, 'apps')).toEqual(before);
  });

  test('stores no secret in plain text', async () => {
    const first = await apps.createApp(dialer);
    await rotate(first.appId, 'jwt');
    const issued = { ...first, ...(await rotate(first.appId, 'api-key')) };
    const rows = await Promise.all([
      rowsIn(database.pool, 'apps'),
      rowsIn(database.pool, 'webhook_secrets'),
    ]);

    const stored = Buffer.from(
      JSON.stringify(rows, (_key, value: unknown) =>
        isBytes(value) ? Buffer.from(value.data).toString('latin1') : value,
      ),
    ).toString('latin1');
    for (const secret of [first.apiKey, issued.apiKey, first.jwtSecret, first.webhookSecret]) {
      expect(stored).not.toContain(secret);
    }
  });

  test('of a revoked app is refused, and its credentials stay invalid', async () => {
    const { appId, apiKey } = await apps.createApp(dialer);
    const { apiKey: second = '' } = await rotate(appId, 'api-key');
    const elsewhere = openApps();
    await elsewhere.findByApiKey(apiKey);

    expect(await apps.revoke(appId)).toBe(true);

    expect(await apps.find(appId)).toBeUndefined();
    expect([await ownerOf(apiKey), await ownerOf(second)]).toEqual([undefined, undefined]);
    expect(await apps.rotate(appId, { what: 'jwt', graceS: 60 })).toEqual({ kind: 'unknown' });
    expect(await elsewhere.findByApiKey(apiKey)).toBeDefined();
    nowMs += 5_000;
    expect(await elsewhere.findByApiKey(apiKey)).toBeUndefined();
  });

  test('does not undo or move a revocation; notifications are still signed', async () => {
    const { appId, webhookSecret } = await apps.createApp(dialer);
    await apps.revoke(appId);
    nowMs += 1_000;

    expect(await apps.revoke(appId)).toBe(true);
    expect(await apps.revoke('app-x')).toBe(false);

    expect((await apps.list()).map(({ revokedAt }) => revokedAt)).toEqual([new Date(noon)]);
    expect(await apps.webhookSecrets(appId)).toEqual([webhookSecret]);
  });
});

function isBytes(value: unknown): value is { type: 'Buffer'; data: readonly number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer';
}
