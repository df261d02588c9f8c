// The account that owns a bot, and the bot's two names.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BotStore, createBotDirectory } from '../../../src/store/apps/bot-directory.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { forSuite } from '../../support/opened.ts';

const noon = new Date('2026-03-01T12:00:00.000Z');
const shop = { botId: 'shop', accountId: 'acme', streamId: 'st-shop' };

describe.each(databaseKinds)('bots on %s', (kind) => {
  let now: Date;
  let bots: BotStore;
  const openBots = (ownerOfUnknown?: string): BotStore =>
    createBotDirectory({
      database,
      clock: { now: () => now },
      ...(ownerOfUnknown === undefined ? {} : { ownerOfUnknown }),
    });

  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(() => {
    now = noon;
    bots = openBots();
  });
  afterEach(() => database.pool.query('delete from bots'));

  test('are found by their id and by their stream alias, as soon as they are added', async () => {
    expect(await bots.find('shop')).toBeUndefined();

    expect(await bots.add(shop)).toEqual({ kind: 'stored', bot: shop });

    expect(await bots.find('shop')).toEqual(shop);
    expect(await bots.find('st-shop')).toEqual(shop);
    expect(await bots.ownerOf('st-shop')).toEqual(shop);
  });

  test.each(['gr\u00fc\u00dfe', 'st-\u0000', 'x'.repeat(129), ''])(
    'have no owner under %j, which is not an id: not even the owner of unknown bots',
    async (name) => {
      expect(await openBots('dev').ownerOf(name)).toBeUndefined();
    },
  );

  test('are listed oldest first', async () => {
    await bots.add(shop);
    now = new Date(noon.getTime() + 1);
    await bots.add({ botId: 'desk', accountId: 'rival', iconUrl: 'https://x.example/i.png' });

    expect(await bots.list()).toEqual([
      shop,
      { botId: 'desk', accountId: 'rival', iconUrl: 'https://x.example/i.png' },
    ]);
  });

  test('accept another alias or logo from their own account, and keep omitted members', async () => {
    await bots.add(shop);
    await bots.add({ ...shop, streamId: 'st-new' });
    await bots.add({ botId: 'shop', accountId: 'acme', iconUrl: 'https://x.example/i.png' });
    await bots.add({ botId: 'shop', accountId: 'acme' });

    expect(await bots.list()).toEqual([
      { ...shop, streamId: 'st-new', iconUrl: 'https://x.example/i.png' },
    ]);
    expect(await bots.find('st-shop')).toBeUndefined();
  });

  test.each([
    ['of another account', { ...shop, accountId: 'rival' }, /another account/],
    [
      'whose id is the alias of another',
      { botId: 'st-shop', accountId: 'acme' },
      /belongs to shop/,
    ],
    [
      'whose alias is the id of another',
      { botId: 'desk', accountId: 'acme', streamId: 'shop' },
      /belongs to shop/,
    ],
    [
      'whose alias is that of another',
      { botId: 'desk', accountId: 'acme', streamId: 'st-shop' },
      /belongs to shop/,
    ],
  ])('%s are refused, and nothing changes', async (_name, bot, reason) => {
    await bots.add(shop);

    expect(await bots.add(bot)).toEqual({
      kind: 'refused',
      message: expect.stringMatching(reason) as string,
    });

    expect(await bots.list()).toEqual([shop]);
  });

  test('that two accounts add concurrently under one name go to one of them', async () => {
    const added = await Promise.all(
      ['a', 'b', 'c'].map((botId) =>
        openBots().add({ botId, accountId: 'acme', streamId: 'st-1' }),
      ),
    );

    expect(added.map((result) => result.kind).toSorted()).toEqual(['refused', 'refused', 'stored']);
    expect(await bots.list()).toHaveLength(1);
  });

  test('that were not added belong to the owner of unknown bots, or to no account', async () => {
    await bots.add(shop);

    expect(await openBots('dev').ownerOf('other')).toEqual({ botId: 'other', accountId: 'dev' });
    expect(await openBots('dev').ownerOf('st-shop')).toEqual(shop);
    expect(await openBots('dev').find('other')).toBeUndefined();
    expect(await bots.ownerOf('other')).toBeUndefined();
  });

  test('are cached for seconds after another process changed them, and no longer', async () => {
    await bots.add(shop);
    await bots.find('st-shop');
    await database.pool.query("update bots set stream_id = 'st-new'");

    expect(await bots.find('st-shop')).toEqual(shop);
    now = new Date(noon.getTime() + 5_000);
    expect(await bots.find('st-shop')).toBeUndefined();
  });
});
