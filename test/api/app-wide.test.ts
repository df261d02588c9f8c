// Requests that name no bot: the calls of an app, one call, and the dead letters of an app.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DeadLetters } from '../../src/notifier/dead-letters.ts';
import { type Harness, startHarness, token } from './support.ts';

describe('the requests for all bots of an app', () => {
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

  test('list the calls of its bots by their ids, or of all bots', async () => {
    const response = await get('/api/public/calls?limit=7&state=ended');
    await get('/api/public/calls', 'app-of-all-bots');

    expect(response.json()).toEqual({ calls: [], searched: {} });
    expect(harness.listed).toEqual([
      { scope: own, filter: { limit: 7, state: 'ended' } },
      { scope: { accountId: 'other', botIds: 'all' }, filter: { limit: 50 } },
    ]);
  });

  test('find a call by its id, or answer 404', async () => {
    const path = '/api/public/calls/call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';

    for (const url of [path, '/api/public/calls/none']) {
      const response = await get(url);
      expect(response.statusCode).toBe(404);
      expect(response.json()).toMatchObject({ detail: 'There is no such call.' });
    }
  });

  test('list dead letters with the same filters as for one bot', async () => {
    const response = await get('/api/public/notifications?failure=gone&limit=7');

    expect(response.json()).toEqual({ notifications: [], nextCursor: 'next' });
    expect(asked).toEqual([{ scope: own, filter: { limit: 7, failure: 'gone' } }]);
  });

  test.each([
    '/api/public/calls?cursor=bad',
    '/api/public/calls?stauts=queued',
    '/api/public/notifications?cursor=bad',
    '/api/public/notifications?state=delivered',
  ])('answer an invalid filter with a 400: %s', async (url) => {
    expect((await get(url)).statusCode).toBe(400);
  });

  test.each(['/api/public/calls', '/api/public/calls/call-1', '/api/public/notifications'])(
    'need the scope Dialout: %s',
    async (url) => {
      expect((await get(url, 'app-without-scope')).statusCode).toBe(403);
      expect((await harness.server.inject(url)).statusCode).toBe(401);
    },
  );
});
