import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DeadLetters } from '../../src/notifier/dead-letters.ts';
import {
  dial,
  type Harness,
  minimal,
  type ProblemDocument,
  startHarness,
  token,
} from './support.ts';

const path = '/api/public/bot/st-1/notifications';

describe('dead letters over HTTP', () => {
  let harness: Harness;
  let asked: unknown[];
  beforeEach(async () => {
    asked = [];
    const deadLetters: DeadLetters = {
      list: async (scope, filter) => {
        asked.push({ scope, filter });
        return filter.cursor === 'bad' ? 'bad-cursor' : { deadLetters: [], nextCursor: 'next' };
      },
      replayOne: async (scope, by, eventId) => {
        asked.push({ scope, by, eventId });
        return eventId === 'evt-1'
          ? { eventId, callId: 'call-1', state: 'pending', replayed: true }
          : undefined;
      },
      replay: async (scope, by, selection) => {
        asked.push({ scope, by, selection });
        return { count: 500, more: true };
      },
    };
    harness = await startHarness({ deadLetters });
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const ask = async (method: 'GET' | 'POST', url: string, payload?: object, appId = 'app-1') =>
    await harness.server.inject({
      method,
      url,
      headers: { auth: await token({ appId }) },
      ...(payload === undefined ? {} : { payload }),
    });
  const scope = { accountId: 'acme', botId: 'st-1' };

  test('are listed for the account and bot, by filters', async () => {
    const response = await ask(
      'GET',
      `${path}?state=failed&failure=gone&callId=call-1&from=2026-11-20T09:00:00Z&limit=7`,
    );

    expect(response.json()).toEqual({ notifications: [], nextCursor: 'next' });
    expect(asked).toEqual([
      {
        scope,
        filter: {
          limit: 7,
          failure: 'gone',
          callId: 'call-1',
          failedFrom: new Date('2026-11-20T09:00:00Z'),
        },
      },
    ]);
  });

  test.each([
    '?state=delivered',
    '?cursor=bad',
    '?unknown=1',
    '?from=yesterday',
    '?from=0000-01-01T00:00:00Z',
    '?limit=0',
    '?callId=%00',
    '?callId=',
    `?callId=${'c'.repeat(129)}`,
    '?from=2026-11-20T09:00:00Z&to=2026-11-20T08:59:59Z',
  ])('cannot be listed by an invalid filter: %s', async (query) => {
    expect((await ask('GET', `${path}${query}`)).statusCode).toBe(400);
  });

  test('are replayed one by one, in the name of the app', async () => {
    const response = await ask('POST', `${path}/evt-1/replay`);

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      eventId: 'evt-1',
      callId: 'call-1',
      state: 'pending',
      replayed: true,
    });
    expect(asked).toEqual([{ scope, by: 'app-1', eventId: 'evt-1' }]);
    expect((await ask('POST', `${path}/evt-2/replay`)).statusCode).toBe(404);
  });

  test('are replayed by call or by period, but never all of them by accident', async () => {
    const response = await ask('POST', `${path}/replay`, { callId: 'call-1' });
    await ask('POST', `${path}/replay`, { from: '2026-11-20T09:00:00Z' });

    expect(response.json()).toEqual({ replayed: 500, more: true });
    expect(asked).toEqual([
      { scope, by: 'app-1', selection: { callId: 'call-1' } },
      { scope, by: 'app-1', selection: { failedFrom: new Date('2026-11-20T09:00:00Z') } },
    ]);
    expect((await ask('POST', `${path}/replay`, {})).statusCode).toBe(400);
    expect((await ask('POST', `${path}/replay`, { callID: 'call-1' })).statusCode).toBe(400);
  });

  test.each<[string, object]>([
    ['from', { callId: 'call-1', from: '2026-11-20T09:00:00Z' }],
    ['to', { callId: 'call-1', to: '2026-11-20T09:00:00Z' }],
    ['to', { from: '2026-11-20T09:00:00Z', to: '2026-11-20T09:30:00+01:00' }],
    ['callId', { callId: '\u0000' }],
    ['callId', { callId: 'call-\ud800' }],
  ])('cannot be replayed with the invalid member %s: %j', async (member, selection) => {
    const response = await ask('POST', `${path}/replay`, selection);

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.map(({ path: at }) => at)).toEqual([member]);
    expect(asked).toEqual([]);
  });

  test('cannot have an event id with a control character: a 400 names it', async () => {
    const response = await ask('POST', `${path}/a%00/replay`);

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.map(({ path: at }) => at)).toEqual(['eventId']);
  });

  test('need the scope Dialout, and a bot of the app', async () => {
    const without = await ask('GET', path, undefined, 'app-without-scope');
    const foreign = await ask('POST', '/api/public/bot/st-9/notifications/evt-1/replay');

    expect([without.statusCode, foreign.statusCode]).toEqual([403, 404]);
    expect(asked).toEqual([]);
  });

  test('a notify URL at a forbidden address is a 400', async () => {
    const response = await dial(harness, { ...minimal, notifyurl: 'http://10.0.0.1/hook' });

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.map(({ path: at }) => at)).toEqual([
      'notifyurl',
    ]);
  });
});
