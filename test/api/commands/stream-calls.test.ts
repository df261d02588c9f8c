// The request by which bots of Twilio hang up: what their libraries read of its answers. That it ends a call is in
// test/scenarios/stream-endings.test.ts.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { CallControl } from '../../../src/calls/dialout-ports.ts';
import { app, type Harness, startHarness } from '../support.ts';

const accountSid = `AC${'1'.repeat(32)}`;
const callSid = `CA${'2'.repeat(32)}`;
const callId = 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10' as CallId;
const bot = app({ streamSecrets: ['a-stream-secret'] });

describe('POST /2010-04-01/Accounts/{AC…}/Calls/{CA…}.json', () => {
  let harness: Harness;
  let result: Awaited<ReturnType<CallControl['end']>>;
  beforeEach(async () => {
    // Sixty requests of a slow machine take more than the second after which one more is answered.
    vi.useFakeTimers({ toFake: ['performance'] });
    result = 'ending';
    harness = await startHarness({
      apps: { find: async () => bot, findByApiKey: async () => undefined },
      streams: {
        isReachable: () => true,
        seal: (_botId, url) => ({ url }),
        callOf: async () => ({ callId, accountSid, appId: bot.appId }),
      },
      control: { end: async () => result },
    });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await harness[Symbol.asyncDispose]();
  });

  async function hangUp(secret = 'a-stream-secret') {
    const basic = Buffer.from(`${accountSid}:${secret}`).toString('base64');
    const { statusCode, headers, body } = await harness.server.inject({
      method: 'POST',
      url: `/2010-04-01/Accounts/${accountSid}/Calls/${callSid}.json`,
      headers: {
        authorization: `Basic ${basic}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      payload: 'Status=completed',
    });
    return { status: statusCode, retryAfter: headers['retry-after'], body: JSON.parse(body) };
  }

  test('of a call that cannot be reached is a 503 that says when to ask again', async () => {
    result = 'unreachable';

    expect(await hangUp()).toEqual({
      ...{ status: 503, retryAfter: '5' },
      body: { code: 20_503, message: expect.any(String), status: 503 },
    });
  });

  test('with bad credentials is a 429 in the end, which says when to ask again', async () => {
    for (let failure = 0; failure < 60; failure += 1) {
      expect(await hangUp('guessed')).toMatchObject({ status: 401, retryAfter: undefined });
    }

    expect(await hangUp('guessed')).toEqual({
      ...{ status: 429, retryAfter: '1' },
      body: { code: 20_429, message: expect.any(String), status: 429 },
    });
    expect(await hangUp()).toEqual({
      ...{ status: 200, retryAfter: undefined },
      body: { sid: callSid, status: 'completed' },
    });
  });
});
