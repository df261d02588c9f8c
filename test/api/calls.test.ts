// Reading and ending calls over HTTP. test/interactions tests the data itself.

import { describe, expect, test } from 'vitest';
import type { CallDetails } from '../../src/interactions/call-queries.ts';
import { forEachTest } from '../support/opened.ts';
import { type ProblemDocument, startHarness, token } from './support.ts';

const harness = forEachTest(startHarness);

const callId = 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';
const path = `/api/public/bot/st-1/calls/${callId}`;
const details: CallDetails = {
  callId,
  sid: 'sid-1',
  conversationId: 'c-1',
  botId: 'st-1',
  state: 'ringing',
  status: 'ringing',
  target: 'tel:+15551230001',
  caller: '1',
  machineDetection: 'detect',
  acceptedAt: '2026-11-20T08:00:00.000Z',
  metadata: { a: 1 },
  timeline: [
    {
      eventId: 'evt-1',
      eventSequence: 1,
      type: 'ringing',
      time: '2026-11-20T08:00:01.000Z',
      data: { sipStatus: 180 },
    },
  ],
};

async function ask(url: string, method: 'GET' | 'DELETE' = 'GET', appId = 'app-1') {
  const auth = await token({ appId });
  return await harness.server.inject({ method, url, headers: { auth } });
}

describe('the list of calls', () => {
  test('is limited to the account and bot, with 50 calls a page', async () => {
    const response = await ask('/api/public/bot/st-1/calls');

    expect(response.json()).toEqual({ calls: [], searched: {} });
    expect(harness.listed).toEqual([
      { scope: { accountId: 'acme', botId: 'st-1' }, filter: { limit: 50 } },
    ]);
  });

  test('accepts every filter', async () => {
    const query =
      'limit=7&cursor=c&status=machineDetected&state=ended&outcome=machine&idempotencyKey=k%2F1&callIdPrefix=call-0d9c&from=2026-11-20T08:00:00Z&to=2026-11-21T08:00:00%2B01:00';

    await ask(`/api/public/bot/st-1/calls?${query}`);

    expect(harness.listed[0]?.filter).toEqual({
      limit: 7,
      cursor: 'c',
      status: 'machineDetected',
      state: 'ended',
      outcome: 'machine',
      idempotencyKey: 'k/1',
      callIdPrefix: 'call-0d9c',
      acceptedFrom: new Date('2026-11-20T08:00:00Z'),
      acceptedTo: new Date('2026-11-21T07:00:00Z'),
    });
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=201', 'limit'],
    ['limit=many', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['status=gone', 'status'],
    ['state=gone', 'state'],
    ['outcome=gone', 'outcome'],
    ['from=yesterday', 'from'],
    ['from=0000-01-01T00:00:00Z', 'from'],
    ['to=9999-12-31T23:59:59-23:59', 'to'],
    ['from=2026-11-21T08:00:00Z&to=2026-11-21T08:00:00%2B01:00', 'to'],
    ['to=2026-13-01T00:00:00Z', 'to'],
    ['idempotencyKey=%00', 'idempotencyKey'],
    ['callIdPrefix=0d9c4c52', 'callIdPrefix'],
    ['callIdPrefix=call-0d9', 'callIdPrefix'],
    ['callIdPrefix=call-0D9C', 'callIdPrefix'],
    ['callIdPrefix=call-0d9c-', 'callIdPrefix'],
    ['callIdPrefix=call-%25%25%25%25', 'callIdPrefix'],
    ['callIdPrefix=call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f100', 'callIdPrefix'],
    ['cursor=bad', 'cursor'],
    ['stauts=queued', 'stauts'],
  ])('?%s is a 400 that names %s', async (query, member) => {
    const response = await ask(`/api/public/bot/st-1/calls?${query}`);

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.map((error) => error.path)).toEqual([member]);
  });

  test('a bot id with unsafe characters is a 400', async () => {
    const response = await ask('/api/public/bot/st.%3E/calls', 'GET', 'app-of-all-bots');

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors?.[0]?.path).toBe('botId');
  });
});

describe('one call', () => {
  test('has its timeline', async () => {
    harness.call = details;

    const response = await ask(path);

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(details);
  });

  test('has its position in the queue while it waits', async () => {
    const queued = { state: 'queued', status: 'queued', timeline: [], queuePosition: 3 } as const;
    harness.call = { ...details, ...queued };

    expect((await ask(path)).json()).toEqual(harness.call);
  });

  test.each(['', '/context', '/notifications'])('that is unknown is a 404: %j', async (rest) => {
    const response = await ask(`${path}${rest}`);

    expect(response.statusCode).toBe(404);
    expect(response.json<ProblemDocument>().detail).toBe('There is no such call.');
  });

  test('of another account is a 404', async () => {
    harness.call = details;

    expect((await ask(path, 'GET', 'app-of-all-bots')).statusCode).toBe(404);
    expect((await ask(path, 'DELETE', 'app-of-all-bots')).statusCode).toBe(404);
    expect(harness.ended).toEqual([]);
  });

  test.each(['call-%00', 'call-%7F', 'call-%C2%85'])(
    'whose id has a control character is a 400 that names it: %s',
    async (id) => {
      const response = await ask(`/api/public/bot/st-1/calls/${id}`);

      expect(response.statusCode).toBe(400);
      expect(response.json<ProblemDocument>().errors).toEqual([
        { path: 'callId', message: 'must be text without control characters' },
      ]);
    },
  );

  test.each(['x', 'call-..%2F', `call-${'a'.repeat(65)}`])(
    'with an impossible id is a 404: %s',
    async (id) => {
      harness.call = details;

      expect((await ask(`/api/public/bot/st-1/calls/${id}`)).statusCode).toBe(404);
    },
  );
});

describe('ending a call', () => {
  test('cancels or hangs up, and answers that the call is ending', async () => {
    harness.call = details;

    const response = await ask(path, 'DELETE');

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ callId, state: 'ending' });
    expect(harness.ended).toEqual([callId]);
  });

  test('may be repeated', async () => {
    harness.call = { ...details, state: 'ended', status: 'completed' };

    const response = await ask(path, 'DELETE');

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ callId, state: 'ended' });
    expect(harness.ended).toEqual([]);
  });

  test('accepts a content type without a body', async () => {
    harness.call = details;

    const response = await harness.server.inject({
      method: 'DELETE',
      url: path,
      headers: { auth: await token(), 'content-type': 'application/json' },
    });

    expect(response.statusCode).toBe(200);
  });

  test('answers 503 if the process of the call is unreachable, because the call will end', async () => {
    harness.call = details;
    harness.endResult = 'unknown';

    const response = await ask(path, 'DELETE');

    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('5');
  });

  test('answers 404 for an unknown call', async () => {
    expect((await ask(path, 'DELETE')).statusCode).toBe(404);
  });
});
