// A bot with two names: requests may use either, and results use the bot's own id.

import { describe, expect, test } from 'vitest';
import type { Bot } from '../../src/store/apps/bot-directory.ts';
import { forEachTest } from '../support/opened.ts';
import { app, apps, minimal, startHarness, token } from './support.ts';

const bots: readonly Bot[] = [
  { botId: 'shop', accountId: 'acme', streamId: 'st-1' },
  { botId: 'desk', accountId: 'acme', streamId: 'st-desk' },
  { botId: 'rival-bot', accountId: 'rival', streamId: 'st-rival' },
];

const harness = forEachTest(() =>
  startHarness({
    apps: {
      find: async (appId) => (appId === 'all' ? app({ appId, bots: ['*'] }) : apps[appId]),
      findByApiKey: async () => undefined,
    },
    bots: {
      find: async (name) => bots.find(({ botId, streamId }) => [botId, streamId].includes(name)),
      ownerOf: async () => undefined,
    },
  }),
);

async function dialFor(path: string, body: Record<string, unknown>, appId = 'app-1') {
  const { botId: _none, ...rest } = minimal;
  return await harness.server.inject({
    method: 'POST',
    url: `/api/1.1/public/bot/${path}/V2/contactcenter/dialout`,
    headers: { auth: await token({ appId }), 'idempotency-key': 'once' },
    payload: { ...rest, ...body },
  });
}

describe('dial-out', () => {
  test.each([
    ['shop', { botId: 'shop' }],
    ['shop', { botId: 'st-1' }],
    ['st-1', { botId: 'st-1' }],
    ['st-1', { bot: 'shop' }],
    ['st-1', { bot: 'st-1', botId: 'shop' }],
  ])('to %s with %j in the body is for the bot shop', async (path, body) => {
    const response = await dialFor(path, body);

    expect(response.statusCode).toBe(200);
    expect(harness.submissions).toMatchObject([{ botId: 'shop', accountId: 'acme' }]);
  });

  test('is the same request by either name', async () => {
    await dialFor('shop', { botId: 'shop' });
    await dialFor('st-1', { bot: 'st-1' });

    const [one, other] = harness.submissions.map(({ idempotency }) => idempotency?.requestHash);
    expect(one).toBe(other);
  });

  test.each([
    ['shop', { botId: 'desk' }],
    ['st-1', { botId: 'st-desk' }],
    ['st-1', { botId: 'shop', bot: 'desk' }],
  ])('to %s with another bot in the body, %j, is a 400', async (path, body) => {
    const response = await dialFor(path, body, 'all');

    expect(response.statusCode).toBe(400);
    expect(harness.submissions).toEqual([]);
  });

  test('for an unregistered bot uses its only name', async () => {
    expect((await dialFor('new', { botId: 'new' }, 'all')).statusCode).toBe(200);
    expect(harness.submissions).toMatchObject([{ botId: 'new' }]);
  });
});

describe('reading', () => {
  test.each(['shop', 'st-1'])('the calls of %s reads those of the bot shop', async (name) => {
    await harness.server.inject({
      url: `/api/public/bot/${name}/calls`,
      headers: { auth: await token() },
    });

    expect(harness.listed).toMatchObject([{ scope: { accountId: 'acme', botId: 'shop' } }]);
  });

  test.each(['rival-bot', 'st-rival', 'desk', 'st-desk'])(
    '%s, which is of another account or not granted, is a 404',
    async (name) => {
      const response = await harness.server.inject({
        url: `/api/public/bot/${name}/calls`,
        headers: { auth: await token() },
      });

      expect(response.statusCode).toBe(404);
      expect(harness.listed).toEqual([]);
    },
  );

  test.each(['rival-bot', 'st-rival'])(
    '%s is a 404 also for an app with all bots',
    async (name) => {
      const response = await harness.server.inject({
        url: `/api/public/bot/${name}/calls`,
        headers: { auth: await token({ appId: 'all' }) },
      });

      expect(response.statusCode).toBe(404);
    },
  );
});
