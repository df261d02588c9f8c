// The member `stream` of a dial-out request, combined with the stream of the bot.

import { beforeEach, describe, expect, test } from 'vitest';
import type { Bot } from '../../../src/store/apps/bot-directory.ts';
import { forSuite } from '../../support/opened.ts';
import { app, startHarness, token } from '../support.ts';

let bot: Bot | undefined;

const url = 'wss://bot.example/audio';

const harness = forSuite(() =>
  startHarness({
    bots: { find: async () => bot, ownerOf: async () => bot },
    apps: {
      find: async () => app({}),
      findByApiKey: async () => undefined,
    },
  }),
);
beforeEach(() => {
  bot = undefined;
  harness.submissions.length = 0;
});

async function dial(body: object) {
  const response = await harness.server.inject({
    method: 'POST',
    url: '/api/1.1/public/bot/st-1/V2/contactcenter/dialout',
    headers: { auth: await token() },
    payload: { botId: 'st-1', target: 'tel:+12025550110', caller: '15559876543', ...body },
  });
  const { errors } = response.json<{ errors?: { path: string; message: string }[] }>();
  return { status: response.statusCode, errors, stream: harness.submissions[0]?.request.stream };
}

const botStream = {
  url: 'wss://own.example/',
  sealedQuery: 'c2VhbGVk',
  connect: 'person',
} as const;

function registered(): void {
  bot = { botId: 'st-1', accountId: 'acme', stream: botStream };
}

describe('the stream of a request', () => {
  test('is absent unless the request or its bot defines one', async () => {
    expect(await dial({})).toMatchObject({ status: 200, stream: undefined });
  });

  test('is the one of the request', async () => {
    const stream = { url, connect: 'person', parameters: { campaign: 'spring' } };

    expect(await dial({ stream, machineDetection: 'detect' })).toMatchObject({
      status: 200,
      stream,
    });
  });

  test('is the one of the bot, with the members that the request sets', async () => {
    registered();
    const detect = { machineDetection: 'detect' };

    expect(await dial(detect)).toMatchObject({ stream: { ...botStream, parameters: {} } });
    harness.submissions.length = 0;
    const parameters = { campaign: 'spring' };
    expect(await dial({ ...detect, stream: { parameters } })).toMatchObject({
      stream: { ...botStream, parameters },
    });
  });

  test('connects a bot that waits for a person at the answer if there is no detection', async () => {
    registered();

    expect(await dial({})).toMatchObject({ status: 200, stream: { connect: 'answered' } });
  });

  test('is absent if the request sets null', async () => {
    registered();

    expect((await dial({ stream: null })).stream).toBeUndefined();
  });

  test.each([
    ['no address', {}, 'stream.url'],
    ['http', { url: 'https://bot.example/' }, 'stream.url'],
    ['no host', { url: 'wss:///audio' }, 'stream.url'],
    ['no slashes', { url: 'wss:audio' }, 'stream.url'],
    ['a user in the URL', { url: 'wss://me@bot.example/' }, 'stream.url'],
    ['a fragment', { url: `${url}#there` }, 'stream.url'],
    ['a space', { url: `${url} ` }, 'stream.url'],
    ['an address of the inside', { url: 'ws://10.0.0.1/' }, 'stream.url'],
    ['a person without detection', { url, connect: 'person' }, 'stream.connect'],
    ['another word', { url, connect: 'ringing' }, 'stream.connect'],
    ['a number as a parameter', { url, parameters: { one: 1 } }, 'stream.parameters.one'],
    ['a misspelling', { URL: url }, 'stream.URL'],
  ])('with %s is a 400', async (_what, stream, path) => {
    const { status, errors } = await dial({ stream });

    expect(status).toBe(400);
    expect(errors?.map((error) => error.path)).toContain(path);
  });
});
