// Requests in Twilio's form, and the members of the answers that Twilio's libraries read.
// test/scenarios/twilio.test.ts and test/scenarios/stream-endings.test.ts test that a call ends,
// and how Twilio's own library reads the answers.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { callResource } from '../../../src/api/twilio/call-resource.ts';
import type { CommandReply } from '../../../src/calls/contract/command.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { CallDetails } from '../../../src/interactions/call-queries.ts';
import { app, type Harness, startHarness } from '../support.ts';

const accountSid = `AC${'1'.repeat(32)}`;
const callSid = `CA${'2'.repeat(32)}`;
const callId = 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10' as CallId;
const bot = app({ streamSecrets: ['a-stream-secret'] });

const answered: CallDetails = {
  ...{ callId, sid: 'sid-1', conversationId: 'c-1', botId: 'st-1' },
  ...{ state: 'answered', status: 'answered', machineDetection: 'detect' },
  ...{ target: 'tel:+12025550110', caller: '15559876543', metadata: {}, timeline: [] },
  acceptedAt: '2026-11-20T09:00:00.000Z',
  answeredAt: '2026-11-20T09:00:04.120Z',
};
const unused = () => Promise.reject(new Error('not part of this test'));
const noCalls = {
  ...{ list: unused, summary: unused, callers: unused, state: unused },
  ...{ context: unused, notifications: unused },
};

type Asked = {
  readonly secret?: string;
  readonly sid?: string;
  readonly form?: string;
  readonly type?: string;
};

describe('/2010-04-01/Accounts/{AC…}/Calls/{CA…}.json', () => {
  let harness: Harness;
  let result: CommandReply | undefined;
  let call: CallDetails | undefined;
  let isAway: boolean;
  beforeEach(async () => {
    // On a slow machine, sixty requests take longer than the second after which another one is
    // answered.
    vi.useFakeTimers({ toFake: ['performance'] });
    result = { ok: true, state: 'ending' };
    call = answered;
    isAway = false;
    harness = await startHarness({
      apps: { find: async () => bot, findByApiKey: async () => undefined },
      calls: {
        ...noCalls,
        details: async () => {
          if (isAway) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
          return call;
        },
      },
      streams: {
        isReachable: () => true,
        seal: (_botId, url) => ({ url }),
        callOf: async () => ({ callId, accountSid, appId: bot.appId }),
      },
      commands: { run: async () => result },
    });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await harness[Symbol.asyncDispose]();
  });

  async function ask(method: 'GET' | 'POST', { secret = 'a-stream-secret', ...more }: Asked = {}) {
    const basic = Buffer.from(`${accountSid}:${secret}`).toString('base64');
    const form = { 'content-type': more.type ?? 'application/x-www-form-urlencoded' };
    const { statusCode, headers, body } = await harness.server.inject({
      method,
      url: `/2010-04-01/Accounts/${accountSid}/Calls/${more.sid ?? callSid}.json`,
      headers: { authorization: `Basic ${basic}`, ...(method === 'POST' ? form : {}) },
      ...(method === 'POST' ? { payload: more.form ?? 'Status=completed' } : {}),
    });
    return {
      ...{ status: statusCode, retryAfter: headers['retry-after'] },
      body: JSON.parse(body) as object,
    };
  }
  const hangUp = (secret?: string) => ask('POST', secret === undefined ? {} : { secret });

  test('GET reads the call in Twilio’s form', async () => {
    expect(await ask('GET')).toEqual({
      status: 200,
      retryAfter: undefined,
      body: callResource(answered, { accountSid, callSid }),
    });
  });

  test('GET of a deleted call is a 404 in Twilio’s form', async () => {
    call = undefined;

    expect(await ask('GET')).toMatchObject({ status: 404, body: { code: 20_404, status: 404 } });
  });

  test.each(['CA1', `CA${'g'.repeat(32)}`, '%00', 'x'.repeat(90)])(
    'an invalid id (%s) is answered like bad credentials',
    async (sid) => {
      expect(await ask('GET', { sid })).toMatchObject({ status: 401, body: { code: 20_003 } });
    },
  );

  test.each([
    ['Status=completed&Url=x', 'Only Status is supported here, not Url'],
    ['Status=canceled', 'Status must be completed'],
    ['', 'Status must be completed'],
  ])('POST of the form "%s" is a 400 that names the mistake', async (form, message) => {
    expect(await ask('POST', { form })).toMatchObject({
      status: 400,
      body: { code: 20_001, message, status: 400 },
    });
  });

  test('a body that is not a form, or too large, is an error in Twilio’s form', async () => {
    expect(await ask('POST', { type: 'text/plain' })).toMatchObject({
      ...{ status: 415, body: { code: 20_415, status: 415 } },
    });
    const form = `Status=${'x'.repeat(300_000)}`;
    expect(await ask('POST', { form })).toMatchObject({ status: 413, body: { code: 20_413 } });
  });

  test('a request that only Twilio serves is a 404 in Twilio’s form that names Offhook’s paths', async () => {
    const { statusCode, body } = await harness.server.inject({
      method: 'POST',
      url: `/2010-04-01/Accounts/${accountSid}/Calls.json`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: 'To=%2B12025550110&From=%2B15559876543',
    });

    expect([statusCode, JSON.parse(body)]).toEqual([
      404,
      { code: 20_404, status: 404, message: expect.stringContaining('contactcenter/dialout') },
    ]);
  });

  test('POST hangs up a call that cannot be read at the moment', async () => {
    isAway = true;

    expect(await hangUp()).toMatchObject({
      status: 200,
      body: { sid: callSid, account_sid: accountSid, status: 'completed' },
    });
  });

  test('an unreachable database is a 503 in Twilio’s form', async () => {
    isAway = true;

    expect(await ask('GET')).toMatchObject({ status: 503, body: { code: 20_503 } });
  });

  test('POST for a call that cannot be reached is a 503 with Retry-After', async () => {
    result = undefined;

    expect(await hangUp()).toEqual({
      ...{ status: 503, retryAfter: '5' },
      body: { code: 20_503, message: expect.any(String), status: 503 },
    });
  });

  test('POST for a call that has ended is a 404', async () => {
    result = { ok: true, state: 'ended' };

    expect(await hangUp()).toMatchObject({ status: 404, body: { code: 20_404, status: 404 } });
  });

  test('POST with bad credentials becomes a 429 with Retry-After', async () => {
    for (let failure = 0; failure < 60; failure += 1) {
      expect(await hangUp('guessed')).toMatchObject({ status: 401, retryAfter: undefined });
    }

    expect(await hangUp('guessed')).toEqual({
      ...{ status: 429, retryAfter: '1' },
      body: { code: 20_429, message: expect.any(String), status: 429 },
    });
    expect(await hangUp()).toEqual({
      ...{ status: 200, retryAfter: undefined },
      body: { ...callResource(answered, { accountSid, callSid }), status: 'completed' },
    });
  });
});
