// The members `voicemail` and `screening` of a dial-out request: how they are read, and when they
// are refused.

import { beforeEach, describe, expect, test } from 'vitest';
import { forSuite } from '../../support/opened.ts';
import { startHarness, token } from '../support.ts';

const harness = forSuite(startHarness);
beforeEach(() => {
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
  return { status: response.statusCode, errors, request: harness.submissions[0]?.request };
}

const detect = { machineDetection: 'detect' };

describe('a plan in a request', () => {
  test('is kept with its defaults', async () => {
    const voicemail = { play: 'sound:spring-offer' };
    const screening = { play: 'https://sounds.example/who-is-calling.wav' };
    const { status, request } = await dial({ ...detect, voicemail, screening });

    expect(status).toBe(200);
    expect(request).toMatchObject({
      voicemail: { ...voicemail, ifNoBeep: 'play', waitForBeepMs: 4_000, maxMs: 60_000 },
      screening,
    });
  });

  test('is absent in a request without a plan', async () => {
    const { request } = await dial(detect);

    expect(Object.keys(request ?? {})).not.toEqual(expect.arrayContaining(['voicemail']));
    expect(Object.keys(request ?? {})).not.toEqual(expect.arrayContaining(['screening']));
  });

  test.each(['disabled', 'disconnect', undefined])(
    'is refused with the machine detection %s',
    async (mode) => {
      const plan = { play: 'sound:offer' };
      const { status, errors } = await dial({
        ...{ voicemail: plan, screening: plan },
        ...(mode === undefined ? {} : { machineDetection: mode }),
      });

      expect(status).toBe(400);
      expect(errors).toEqual([
        { path: 'voicemail', message: 'needs machineDetection: detect' },
        { path: 'screening', message: 'needs machineDetection: detect' },
      ]);
    },
  );

  test.each([
    ['voicemail.play', { play: 'offer.wav' }],
    ['voicemail.play', { play: 'ftp://sounds.example/a.wav' }],
    ['voicemail.play', { play: 'https://user:secret@sounds.example/a.wav' }],
    ['voicemail.play', { play: 'https:///a.wav' }],
    ['voicemail.play', { play: 'https:a.wav' }],
    ['voicemail.play', {}],
    ['voicemail.ifNoBeep', { play: 'sound:a', ifNoBeep: 'wait' }],
    ['voicemail.waitForBeepMs', { play: 'sound:a', waitForBeepMs: 1 }],
    ['voicemail.maxMs', { play: 'sound:a', maxMs: 600_001 }],
    ['voicemail.if_no_beep', { play: 'sound:a', if_no_beep: 'play' }],
  ])('%s is checked: %j', async (path, voicemail) => {
    const { status, errors } = await dial({ ...detect, voicemail });

    expect(status).toBe(400);
    expect(errors?.map((error) => error.path)).toEqual([path]);
  });

  test('names each sound at a forbidden address, and the setting that allows it', async () => {
    const plan = { play: 'https://10.0.0.1/a.wav' };
    const { status, errors } = await dial({ ...detect, voicemail: plan, screening: plan });

    const message = 'must be a public address over https, or one in NOTIFY_ALLOWED_NETWORKS';
    expect(status).toBe(400);
    expect(errors).toEqual([
      { path: 'voicemail.play', message },
      { path: 'screening.play', message },
    ]);
  });

  test.each([
    ['voicemail', { play: 'sound:a' }, 'wait_for_beep_ms', 'waitForBeepMs'],
    ['screening', { play: 'sound:a' }, 'Play', 'play'],
    ['bridge', { to: 'tel:+12025550105' }, 'timeoutMS', 'timeoutMs'],
    ['bridge', { to: 'tel:+12025550105' }, 'on-failure', 'onFailure'],
    ['timers', {}, 'noSpeechTimeoutMS', 'noSpeechTimeoutMs'],
    ['callControlParameter', { sttProvider: 'a', sttLanguage: 'en' }, 'sttprovider', 'sttProvider'],
  ])('names a misspelled member of %s', async (member, good, wrong, meant) => {
    const { status, errors } = await dial({ ...detect, [member]: { ...good, [wrong]: 'x' } });

    expect(status).toBe(400);
    expect(errors).toEqual([
      { path: `${member}.${wrong}`, message: `is unknown; did you mean ${meant}?` },
    ]);
  });
});
