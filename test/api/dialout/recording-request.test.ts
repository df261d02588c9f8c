// The member `recording` of a dial-out request, combined with the default of the bot.

import { beforeEach, describe, expect, test } from 'vitest';
import type { Bot } from '../../../src/store/apps/bot-directory.ts';
import { forSuite } from '../../support/opened.ts';
import { app, startHarness, token } from '../support.ts';

let bot: Bot | undefined;

const harness = forSuite(() =>
  startHarness({
    bots: { find: async () => bot, ownerOf: async () => bot },
    apps: { find: async () => app({}), findByApiKey: async () => undefined },
  }),
);
beforeEach(() => {
  bot = undefined;
  harness.submissions.length = 0;
});

async function dial(recording: unknown, more: object = {}) {
  const response = await harness.server.inject({
    method: 'POST',
    url: '/api/1.1/public/bot/st-1/V2/contactcenter/dialout',
    headers: { auth: await token() },
    payload: {
      ...{ botId: 'st-1', target: 'tel:+12025550110', caller: '15559876543', recording },
      ...more,
    },
  });
  const { errors, ignored } = response.json<{ errors?: object[]; ignored?: string[] }>();
  const [submission] = harness.submissions;
  return { status: response.statusCode, errors, ignored, recording: submission?.request.recording };
}

const defaults = { from: 'answer', pauseOnKeys: false, fill: 'silence', required: false };

function registered(recording: Bot['recording'] = {}): void {
  bot = { botId: 'st-1', accountId: 'acme', recording };
}

describe('the recording of a request', () => {
  test('is absent unless the request or its bot asks for one', async () => {
    expect(await dial(undefined)).toMatchObject({ status: 200, recording: undefined });
  });

  test('has the defaults', async () => {
    expect((await dial(true)).recording).toEqual(defaults);
    expect((await dial({})).recording).toEqual(defaults);
  });

  test('is stored in canonical spelling', async () => {
    const recording = {
      ...{ from: 'person', announce: 'sound:notice', pauseOnKeys: true, fill: 'cut' },
      ...{ retentionDays: 30, key: 'crm-2026', required: true },
      notifyurl: 'https://crm.example/recorded#top',
    };
    const { notifyurl: _url, ...stored } = recording;

    expect((await dial(recording, { machineDetection: 'detect' })).recording).toEqual({
      ...{ ...stored, notifyUrl: 'https://crm.example/recorded' },
    });
  });

  test('replaces the members of the bot’s default one by one', async () => {
    registered({ from: 'person', announce: 'sound:notice', key: 'crm-2026' });
    const detect = { machineDetection: 'detect' };

    const own = { ...defaults, from: 'person', announce: 'sound:notice', key: 'crm-2026' };
    expect((await dial(undefined, detect)).recording).toEqual(own);
    harness.submissions.length = 0;
    expect((await dial({ fill: 'cut', announce: 'sound:other' }, detect)).recording).toEqual({
      ...{ ...own, fill: 'cut', announce: 'sound:other' },
    });
  });

  test('begins at the answer if the bot waits for a person and nothing detects one', async () => {
    registered({ from: 'person' });
    expect((await dial(undefined)).recording).toEqual(defaults);
  });

  test('is forbidden by false, whatever the bot says', async () => {
    registered({ key: 'gone' });
    expect(await dial(false)).toMatchObject({ status: 200, recording: false });
  });

  test.each([
    ['from', { from: 'ring' }, 'from', /must be one of answer, person, command/],
    ['a person without detection', { from: 'person' }, 'from', /needs machineDetection/],
    ['a sound', { announce: 'notice' }, 'announce', /sound:/],
    ['an address', { announce: 'https://10.0.0.1/a.wav' }, 'announce', /address/],
    ['a receiver', { notifyurl: 'https://10.0.0.1/' }, 'notifyurl', /NOTIFY_ALLOWED_NETWORKS/],
    ['a URL', { notifyurl: 'ftp://crm.example/' }, 'notifyurl', /http/],
    ['a key', { key: 'crm-1999' }, 'key', /no key of this name/],
    ['days', { retentionDays: 0 }, 'retentionDays', /at least 1/],
    ['pauses', { pauseOnKeys: 'yes' }, 'pauseOnKeys', /boolean/],
    ['a requirement', { required: 1 }, 'required', /boolean/],
    ['a misspelling', { retentionDay: 3 }, 'retentionDay', /did you mean retentionDays/],
  ])('is refused for %s', async (_what, recording, path, message) => {
    expect(await dial(recording)).toMatchObject({
      status: 400,
      errors: [{ path: `recording.${path}`, message: expect.stringMatching(message) as unknown }],
    });
  });

  test('is refused if the key of the bot is gone', async () => {
    registered({ key: 'crm-1999' });
    expect(await dial(undefined)).toMatchObject({
      status: 400,
      errors: [{ path: 'recording.key' }],
    });
  });

  test('is refused if it is no object', async () => {
    expect(await dial('yes')).toMatchObject({
      status: 400,
      errors: [{ path: 'recording', message: 'must be an object, true or false' }],
    });
  });
});
