// What an app asks without naming a bot: its calls, one of them, its dead letters.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DeadLetters } from '../../src/notifier/dead-letters.ts';
import { type Harness, startHarness, token } from './support.ts';

describe('every bot of the app', () => {
  let harness: Harness;
  let asked: unknown[];
  beforeEach(async () => {
    asked = [];
    const deadLetters: DeadLetters = {
      list: async (scope, filter) => {
        asked.push({ scope, filter });
        return filter.cursor === 'bad' ? 'bad-cursor' : { deadLetters: [], nextCursor: 'next' };
      },
      replayOne: async () => undefined,
      replay: async () => ({ count: 0, more: false }),
    };
    const known = { botId: 'st-of-alias', accountId: 'acme', streamId: 'st-1' };
    const bots = {
      find: async (name: string) => (name === 'st-1' ? known : undefined),
      ownerOf: async () => undefined,
    };
    harness = await startHarness({ bots, deadLetters });
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const get = async (url: string, appId = 'app-1') =>
    await harness.server.inject({ url, headers: { auth: await token({ appId }) } });
  const own = { accountId: 'acme', botIds: ['st-of-alias'] };

  test('calls are those of its bots, by their own ids, or of all of them', async () => {
    const response = await get('/api/public/calls?limit=7&state=ended');
    await get('/api/public/calls', 'app-of-all-bots');

    expect(response.json()).toEqual({ calls: [] });
    expect(harness.listed).toEqual([
      { scope: own, filter: { limit: 7, state: 'ended' } },
      { scope: { accountId: 'other', botIds: 'all' }, filter: { limit: 50 } },
    ]);
  });

  test('a call is found by its id, or is a 404', async () => {
    const path = '/api/public/calls/call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';

    for (const url of [path, '/api/public/calls/none']) {
      const response = await get(url);
      expect(response.statusCode).toBe(404);
      expect(response.json()).toMatchObject({ detail: 'There is no such call.' });
    }
  });

  test('dead letters are asked by the same filters as those of a bot', async () => {
    const response = await get('/api/public/notifications?failure=gone&limit=7');

    expect(response.json()).toEqual({ notifications: [], nextCursor: 'next' });
    expect(asked).toEqual([{ scope: own, filter: { limit: 7, failure: 'gone' } }]);
  });

  test.each([
    '/api/public/calls?cursor=bad',
    '/api/public/calls?stauts=queued',
    '/api/public/notifications?cursor=bad',
    '/api/public/notifications?state=delivered',
  ])('a filter that is not one is a 400: %s', async (url) => {
    expect((await get(url)).statusCode).toBe(400);
  });

  test.each(['/api/public/calls', '/api/public/calls/call-1', '/api/public/notifications'])(
    'needs the scope Dialout: %s',
    async (url) => {
      expect((await get(url, 'app-without-scope')).statusCode).toBe(403);
      expect((await harness.server.inject(url)).statusCode).toBe(401);
    },
  );
});
