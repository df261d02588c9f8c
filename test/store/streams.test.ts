// The stored data of audio streams: an app's secret, a bot's address, and the CallSid by which a
// bot identifies a call.

import { afterEach, describe, expect, test } from 'vitest';
import { createAppStore } from '../../src/store/apps/apps.ts';
import { createBotDirectory } from '../../src/store/apps/bot-directory.ts';
import { openStreamUrl, sealStreamUrl } from '../../src/store/apps/stream-addresses.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { rowsIn } from '../support/tables.ts';

const noon = Date.parse('2026-03-01T12:00:00.000Z');
const dialer = { name: 'dialer', accountId: 'acme', bots: ['*'], scopes: [] };
const shop = { botId: 'shop', accountId: 'acme' };
const secrets = createSecretBox(Buffer.alloc(32, 7));

describe.each(databaseKinds)('streams on %s', (kind) => {
  let nowMs = noon;
  const clock = { now: () => new Date(nowMs) };
  const openApps = () => createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 });
  const openBots = () => createBotDirectory({ database, clock });

  const database = forSuite(() => openTestDatabase(kind));
  afterEach(async () => {
    nowMs = noon;
    await database.pool.query(
      'delete from apps; delete from webhook_secrets; delete from bots; delete from calls',
    );
  });

  test('a former stream secret is accepted until its grace period ends', async () => {
    const apps = openApps();
    const { appId, streamSecret: first } = await apps.createApp(dialer);
    const rotated = await apps.rotate(appId, { what: 'stream', graceS: 60 });
    const second = rotated.kind === 'rotated' ? rotated.rotated.streamSecret : undefined;

    expect((await apps.find(appId))?.streamSecrets).toEqual([second, first]);
    expect(await apps.rotate(appId, { what: 'stream', graceS: 60 })).toEqual({
      kind: 'in-grace',
      until: new Date(noon + 60_000),
    });
    nowMs += 60_000;
    expect((await openApps().find(appId))?.streamSecrets).toEqual([second]);
  });

  test('a bot’s address is kept, replaced and removed', async () => {
    const bots = openBots();
    const stream = {
      ...sealStreamUrl(secrets, 'shop', 'wss://bot.example/audio?key=s3cret'),
      connect: 'person' as const,
    };
    await bots.add({ ...shop, stream });
    await bots.add({ ...shop, iconUrl: 'https://shop.example/icon.png' });
    expect(await openBots().find('shop')).toMatchObject({ stream });
    expect(openStreamUrl(secrets, 'shop', stream)).toBe('wss://bot.example/audio?key=s3cret');
    expect(JSON.stringify(await rowsIn(database.pool, 'bots'))).not.toContain('s3cret');

    await bots.add({ ...shop, stream: { url: 'wss://other.example/', connect: 'answered' } });
    expect((await bots.find('shop'))?.stream).toEqual({
      ...{ url: 'wss://other.example/', connect: 'answered' },
    });
    await bots.add({ ...shop, stream: null });
    expect((await bots.find('shop'))?.stream).toBeUndefined();
  });

  test('the query string of one bot cannot be decrypted for another bot', () => {
    const sealed = sealStreamUrl(secrets, 'shop', 'wss://bot.example/?key=s3cret');

    expect(() => openStreamUrl(secrets, 'other', sealed)).toThrow('does not open');
  });
});
