// A stream by command is judged for its call: where bots may be, and whether its app can sign; the URL's query is sealed.

import { beforeEach, describe, expect, test } from 'vitest';
import { createStreamJudge } from '../../../src/api/commands/stream-command.ts';
import type { App } from '../../../src/store/apps/app-directory.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { app } from '../support.ts';

const call = acceptedCall();

let known: App | undefined | Error;
beforeEach(() => {
  known = app({ appId: call.appId });
});

const judge = createStreamJudge({
  apps: {
    find: async () => {
      if (known instanceof Error) throw known;
      return known;
    },
  },
  streams: {
    isReachable: ({ hostname }) => hostname !== '10.0.0.1',
    seal: (botId, url) => ({ url: url.split('?')[0] ?? '', sealedQuery: `sealed for ${botId}` }),
  },
});

const url = 'wss://bot.example/audio?key=s3cret';
const judged = {
  ok: true,
  stream: {
    ...{ url: 'wss://bot.example/audio', sealedQuery: `sealed for ${call.botId}` },
    ...{ connect: 'answered', parameters: { a: 'b' } },
  },
};

describe('a stream by command', () => {
  test('is sealed for the bot of the call', async () => {
    expect(await judge(call, { url, parameters: { a: 'b' } })).toEqual(judged);
  });

  test('is refused where no bot may be', async () => {
    const refused = await judge(call, { url: 'wss://10.0.0.1/?key=s3cret' });

    expect(refused).toMatchObject({
      refusal: {
        code: 'invalid',
        errors: [{ path: 'url', message: expect.stringContaining('STREAM_ALLOWED_NETWORKS') }],
      },
    });
    expect(JSON.stringify(refused)).not.toContain('s3cret');
  });

  test('is refused where the app was revoked, so that nothing can sign', async () => {
    known = undefined;

    expect(await judge(call, { url })).toMatchObject({
      refusal: { errors: [{ path: 'url', message: `the app ${call.appId} is revoked` }] },
    });
  });

  test('is taken while SQL does not answer: opening it asks again', async () => {
    known = new Error('SQL is unreachable');

    expect(await judge(call, { url, parameters: { a: 'b' } })).toEqual(judged);
  });
});
