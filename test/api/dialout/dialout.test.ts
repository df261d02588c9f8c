// The dial-out request: how it is read, and which errors it gets with which path.

import { errorCodes } from 'fastify';
import { describe, expect, test } from 'vitest';
import { coversOnAny } from '../../specification/covers.ts';
import { forEachTest } from '../../support/opened.ts';
import { answer, dial, minimal, type ProblemDocument, startHarness } from '../support.ts';

const harness = forEachTest(startHarness);

async function accepted(extra: object, headers = {}) {
  const response = await dial(harness, { ...minimal, ...extra }, headers);
  expect(response.statusCode, response.body).toBe(200);
  const submission = harness.submissions.at(-1);
  if (submission === undefined) throw new Error('nothing was submitted');
  return submission;
}

async function refused(body: object, headers = {}): Promise<readonly string[]> {
  const response = await dial(harness, body, headers);
  expect(response.statusCode, response.body).toBe(400);
  expect(harness.submissions).toEqual([]);
  return (response.json<ProblemDocument>().errors ?? []).map((error) => error.path);
}

describe('a dial-out request', () => {
  test('is answered with the ids of request, call and conversation', async () => {
    coversOnAny(
      'dialout.start.header.auth',
      'dialout.start.header.Content-Type',
      'dialout.start.path.botId',
      'dialout.start.body.botId',
      'dialout.start.body.target',
      'dialout.start.body.caller',
      'dialout.start.response.sid',
      'dialout.start.response.callId',
      'service.data.rule.json',
    );
    const response = await dial(harness, minimal);

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(answer);
    expect(response.headers['idempotent-replayed']).toBeUndefined();
  });

  test('gets the documented defaults', async () => {
    coversOnAny('dialout.start.rule.timer-defaults', 'dialout.start.body.timers');
    const submission = await accepted({});

    expect(submission).toEqual({
      appId: 'app-1',
      accountId: 'acme',
      botId: 'st-1',
      request: {
        target: { kind: 'tel', number: '15551230001' },
        caller: '+15559876543',
        ringTimeoutMs: 60_000,
        trunk: 'carrier',
        metadata: {},
        machineDetection: 'disabled',
        amd: {
          timers: {
            noSpeechTimeoutMs: 5_000,
            decisionTimeoutMs: 15_000,
            toneTimeoutMs: 20_000,
            greetingCompletionTimeoutMs: 2_000,
          },
        },
      },
    });
  });

  test('passes on every member', async () => {
    coversOnAny(
      'dialout.start.body.notifyurl',
      'dialout.start.body.notifyHeaders',
      'dialout.start.body.timeoutInMs',
      'dialout.start.body.trunk',
      'dialout.start.body.metadata',
      'dialout.start.body.machineDetection',
      'dialout.start.body.thresholdWordCount',
      'dialout.start.body.amdEventsSubscription',
    );
    const submission = await accepted({
      notifyurl: 'https://dialer.example.com/calls?id=1#top',
      notifyHeaders: {
        'X-Token': 'abc',
        Accept: 'application/json',
        'Content-Type': 'application/json; charset=utf-8',
      },
      timeoutInMs: 30_000,
      trunk: 'carrier',
      metadata: { customer: { id: 4711 } },
      timers: { toneTimeoutMs: 120_000 },
      machineDetection: 'disconnect',
      detection: 'careful',
      thresholdWordCount: 7,
      amdEventsSubscription: ['amd_human_detected', 'amd_human_detected'],
      maxDurationMs: 7_200_000,
    });

    expect(submission.request).toMatchObject({
      notifyUrl: 'https://dialer.example.com/calls?id=1',
      ringTimeoutMs: 30_000,
      maxDurationMs: 7_200_000,
      trunk: 'carrier',
      metadata: { customer: { id: 4711 } },
      machineDetection: 'disconnect',
      amd: {
        timers: { toneTimeoutMs: 120_000, noSpeechTimeoutMs: 5_000 },
        personAfterSilenceMs: 2_500,
        thresholdWordCount: 7,
      },
      amdEventsSubscription: ['amd_human_detected'],
    });
    expect(submission.notifyHeaders).toEqual({ 'X-Token': 'abc' });
  });

  test('passes on a configured speech-to-text provider with its settings', async () => {
    coversOnAny(
      'dialout.start.body.callControlParameter',
      'dialout.start.body.callControlParameter.sttProvider',
      'dialout.start.body.callControlParameter.sttLanguage',
      'dialout.start.body.callControlParameter.interim',
      'dialout.start.body.callControlParameter.sttLabel',
      'dialout.start.body.callControlParameter.continuousASRTimeoutInMS',
      'dialout.start.body.callControlParameter.sttVendorUtteranceEndMs',
      'dialout.start.body.callControlParameter.sttVendorEndpointing',
    );
    const speechToText = {
      sttProvider: 'our-engine',
      sttLanguage: 'de-DE',
      interim: false,
      sttLabel: 'spring campaign',
      continuousASRTimeoutInMS: 700,
      sttVendorUtteranceEndMs: 1_000,
      sttVendorEndpointing: 0,
    };

    const { request } = await accepted({ callControlParameter: speechToText });

    expect(request.amd.speechToText).toEqual(speechToText);
  });

  test('accepts a speech-to-text provider that is not configured', async () => {
    coversOnAny('dialout.start.body.callControlParameter.sttProvider');
    const speechToText = { sttProvider: 'sttVendor', sttLanguage: 'en-US' };

    const { request } = await accepted({ callControlParameter: speechToText });

    expect(request.amd.speechToText).toEqual(speechToText);
  });

  test('in strict mode, accepts only a configured provider', async () => {
    await using strict = await startHarness({ speechToTextProviders: new Set(['our-engine']) });
    const naming = (sttProvider: string) =>
      dial(strict, { ...minimal, callControlParameter: { sttProvider, sttLanguage: 'en-US' } });

    const refusal = await naming('sttVendor');

    expect(refusal.statusCode).toBe(400);
    expect(refusal.json<ProblemDocument>().errors).toEqual([
      {
        path: 'callControlParameter.sttProvider',
        message: 'no speech-to-text provider of this name is configured',
      },
    ]);
    expect((await naming('our-engine')).statusCode).toBe(200);
  });

  test('rounds fractions of milliseconds in every member', async () => {
    const { request } = await accepted({
      timeoutInMs: 30_000.4,
      queueTimeoutMs: 999.5,
      timers: { noSpeechTimeoutMs: 99.5, decisionTimeoutMs: 120_000.4, toneTimeoutMs: 2_000.5 },
      callControlParameter: {
        ...{ sttProvider: 'our-engine', sttLanguage: 'en-US' },
        ...{ continuousASRTimeoutInMS: 0.4, sttVendorUtteranceEndMs: 1e-7 },
        sttVendorEndpointing: 299.6,
      },
    });

    expect(request).toMatchObject({
      ringTimeoutMs: 30_000,
      queueTimeoutMs: 1_000,
      amd: {
        timers: { noSpeechTimeoutMs: 100, decisionTimeoutMs: 120_000, toneTimeoutMs: 2_001 },
        speechToText: {
          ...{ continuousASRTimeoutInMS: 0, sttVendorUtteranceEndMs: 0 },
          sttVendorEndpointing: 300,
        },
      },
    });
  });

  test('with a time-out that rounds to another value is another request for its idempotency key', async () => {
    const key = { 'idempotency-key': 'order-4711' };
    const hashOf = async (timeoutInMs: number) =>
      (await accepted({ timeoutInMs }, key)).idempotency?.requestHash;

    expect(await hashOf(30_000.2)).toBe(await hashOf(30_000));
    expect(await hashOf(30_000.7)).not.toBe(await hashOf(30_000));
  });

  test('keeps an empty subscription, which means no AMD notifications', async () => {
    const { request } = await accepted({ amdEventsSubscription: [] });

    expect(request.amdEventsSubscription).toEqual([]);
  });

  test('keeps selected events as the types that they mean, however they are named', async () => {
    const key = { 'idempotency-key': 'order-4711' };
    const notifyurl = 'https://dialer.example.com/calls';
    const one = await accepted({ notifyurl, notifyEvents: ['transfer-*', 'dtmf'] }, key);
    const other = await accepted(
      { notifyurl, notifyEvents: ['dtmf', 'answered', 'transfer-*', 'transfer-failed', 'dtmf'] },
      key,
    );

    expect(one.request.notifyEvents).toEqual([
      ...['dtmf', 'transfer-ringing', 'transfer-answered', 'transfer-completed', 'transfer-failed'],
    ]);
    expect(other.request.notifyEvents).toEqual(one.request.notifyEvents);
    expect(other.idempotency?.requestHash).toBe(one.idempotency?.requestHash);
  });

  test.each([[[]], [['answered', 'completed']]])(
    'keeps no selection for events %j, which are always notified',
    async (notifyEvents) => {
      expect((await accepted({ notifyEvents })).request).not.toHaveProperty('notifyEvents');
    },
  );

  test('refuses an unknown event with a list of the known ones', async () => {
    const notifyurl = 'https://dialer.example.com/calls';
    const body = { ...minimal, notifyurl, notifyEvents: ['ringing', 'dtmf-*'] };
    const { errors } = (await dial(harness, body)).json<ProblemDocument>();

    expect(errors).toEqual([
      {
        path: 'notifyEvents.1',
        message: expect.stringMatching(/^must be one of queued, .*, dtmf, .*, stream-\*, .*, \*$/),
      },
    ]);
  });

  test('dials a sip target without a trunk directly', async () => {
    const { request } = await accepted({ target: 'sip:bob@127.0.0.1:5080' });

    expect(request.trunk).toBeUndefined();
  });

  test('ignores unknown members', async () => {
    await accepted({ campaign: 'spring', constructor: 'x', toString: 1 });
  });
});

describe('spellings', () => {
  test('bot, notifyUrl and machinedetection mean botId, notifyurl and machineDetection', async () => {
    coversOnAny('dialout.start.body.bot');
    const { botId, ...rest } = minimal;
    const response = await dial(harness, {
      ...rest,
      bot: botId,
      notifyUrl: 'http://127.0.0.1:9/',
      machinedetection: 'detect',
    });

    expect(response.statusCode).toBe(200);
    expect(harness.submissions[0]?.request).toMatchObject({
      notifyUrl: 'http://127.0.0.1:9/',
      machineDetection: 'detect',
    });
  });

  test('accepts both spellings with the same value', async () => {
    await accepted({ bot: 'st-1' });
  });

  test.each([
    ['bot', { bot: 'st-2' }],
    ['notifyUrl', { notifyurl: 'http://a/', notifyUrl: 'http://b/' }],
    ['machinedetection', { machineDetection: 'detect', machinedetection: 'disabled' }],
  ])('refuses %s if it differs from the documented spelling', async (path, extra) => {
    expect(await refused({ ...minimal, ...extra })).toEqual([path]);
  });

  test('refuses a bot that differs from the bot of the path', async () => {
    expect(await refused({ ...minimal, botId: 'st-2' })).toEqual(['botId']);
  });

  test.each([
    ['timeoutInMS', { timeoutInMS: 5_000 }],
    ['machine_detection', { machine_detection: 'detect' }],
    ['notifyURL', { notifyURL: 'http://a/' }],
    ['timers.toneTimeoutMS', { timers: { toneTimeoutMS: 5_000 } }],
  ])('refuses the misspelling %s', async (path, extra) => {
    expect(await refused({ ...minimal, ...extra })).toEqual([path]);
  });
});

describe('the target', () => {
  test.each([
    ['tel:+15551230001', { kind: 'tel', number: '15551230001' }],
    ['tel:12025550110', { kind: 'tel', number: '12025550110' }],
    ['TEL:+1-(555).123-0001', { kind: 'tel', number: '15551230001' }],
    ['tel:+29010000', { kind: 'tel', number: '29010000' }],
    ['tel:+491234567890123', { kind: 'tel', number: '491234567890123' }],
    ['sip:bob@example.com', { kind: 'sip', user: 'bob', host: 'example.com' }],
    ['SIP:bob@Example.COM:5061', { kind: 'sip', user: 'bob', host: 'example.com', port: 5061 }],
    ['sip:+1555;a=b&c@10.0.0.1', { kind: 'sip', user: '+1555;a=b&c', host: '10.0.0.1' }],
    ['sip:%41lice@host', { kind: 'sip', user: '%41lice', host: 'host' }],
    ['sip:x@[2001:db8::1]:5060', { kind: 'sip', user: 'x', host: '2001:db8::1', port: 5060 }],
    ['sip:x@[::1]', { kind: 'sip', user: 'x', host: '::1' }],
  ])('%s is dialled', async (target, expected) => {
    const { request } = await accepted({ target });

    expect(request.target).toEqual(expected);
  });

  test.each([
    '',
    '15551230001',
    '+15551230001',
    'http://example.com',
    'mailto:a@b',
    'tel:',
    'tel:+',
    'tel:12',
    'tel:+1234567890123456',
    'tel:+123',
    'tel:+123456789012345',
    'tel:+9991234567',
    'tel:15551230001',
    'tel:2025550110',
    'tel:+1 555 123 0001',
    'tel:++1555123',
    'tel:1+555123',
    'tel:+1555CALLNOW',
    'tel:*21',
    'tel:+12025550110;isub=12',
    'tel:+12025550110;ext=a',
    'tel:5551;phone-context=',
    'tel:+1555\r\nX: y',
    'tel:+١٢٣٤',
    'sips:bob@example.com',
    'sip:example.com',
    'sip:@example.com',
    'sip:bob:secret@example.com',
    'sip:bob@',
    'sip:bob@example.com:0',
    'sip:bob@example.com:65536',
    'sip:bob@example.com:',
    'sip:bob@example.com;transport=tcp',
    'sip:bob@example.com?Subject=x',
    'sip:bob@example.com>',
    'sip:bob@ex ample.com',
    'sip:bob@-example.com',
    'sip:bob@example..com',
    'sip:bob@127.1',
    'sip:bob@256.1.1.1',
    'sip:bob@2130706433',
    'sip:bob@[::g]',
    'sip:bob@[fe80::1%25eth0]',
    'sip:bob@::1',
    'sip:bo b@example.com',
    'sip:"bob"@example.com',
    'sip:bob%0d%0aX@example.com',
    'sip:bob%zz@example.com',
    'sip:bob\r\n@example.com',
    'sip:bob@example.com\r\nRoute: <sip:evil>',
    'sip:bøb@example.com',
    `sip:${'a'.repeat(129)}@example.com`,
    `sip:bob@${'a'.repeat(64)}.com`,
  ])('%j is refused', async (target) => {
    expect(await refused({ ...minimal, target })).toEqual(['target']);
  });
});

describe('members', () => {
  test.each<[string, object, string]>([
    ['caller with a space', { caller: 'Acme Inc' }, 'caller'],
    ['caller that ends the header', { caller: '1>\r\nX: y' }, 'caller'],
    ['caller with an escaped line end', { caller: '1%0d%0a' }, 'caller'],
    ['caller with a host', { caller: '1@example.com' }, 'caller'],
    ['empty caller', { caller: '' }, 'caller'],
    ['relative notify URL', { notifyurl: '/calls' }, 'notifyurl'],
    ['notify URL of another scheme', { notifyurl: 'ftp://example.com/' }, 'notifyurl'],
    ['notify URL without a host', { notifyurl: 'http:///calls' }, 'notifyurl'],
    ['notify URL without slashes', { notifyurl: 'http:calls' }, 'notifyurl'],
    ['notify URL with a password', { notifyurl: 'https://a:b@example.com/' }, 'notifyurl'],
    ['notify URL without end', { notifyurl: `https://a/${'b'.repeat(2_048)}` }, 'notifyurl'],
    ['time-out under a second', { timeoutInMs: 999 }, 'timeoutInMs'],
    ['time-out over three minutes', { timeoutInMs: 180_001 }, 'timeoutInMs'],
    ['time-out that rounds to under a second', { timeoutInMs: 999.4 }, 'timeoutInMs'],
    ['time-out that rounds to over three minutes', { timeoutInMs: 180_000.5 }, 'timeoutInMs'],
    ['a call under a second', { maxDurationMs: 999 }, 'maxDurationMs'],
    ['a call without end', { maxDurationMs: 7_200_001 }, 'maxDurationMs'],
    [
      'two ways to read a number',
      { defaultCountry: 'US', bareNumbers: 'international' },
      'bareNumbers',
    ],
    ['a country that is none', { defaultCountry: 'XX' }, 'defaultCountry'],
    ['a country in small letters', { defaultCountry: 'us' }, 'defaultCountry'],
    ['another way to read numbers', { bareNumbers: 'national' }, 'bareNumbers'],
    ['time-out in words', { timeoutInMs: '30000' }, 'timeoutInMs'],
    ['unknown trunk', { trunk: 'nowhere' }, 'trunk'],
    ['metadata that is a list', { metadata: [1] }, 'metadata'],
    ['metadata over 16 KiB', { metadata: { a: 'x'.repeat(16_400) } }, 'metadata'],
    ['metadata with NUL', { metadata: { a: ['\u0000'] } }, 'metadata'],
    ['metadata with half a pair', { metadata: { '\ud800': 1 } }, 'metadata'],
    ['metadata without end', { metadata: { a: nested(40) } }, 'metadata'],
    ['unknown mode', { machineDetection: 'maybe' }, 'machineDetection'],
    ['timer that is too short', { timers: { noSpeechTimeoutMs: 99 } }, 'timers.noSpeechTimeoutMs'],
    [
      'timer that is too long',
      { timers: { noSpeechTimeoutMs: 60_001 } },
      'timers.noSpeechTimeoutMs',
    ],
    [
      'decision past two minutes',
      { timers: { decisionTimeoutMs: 120_001 } },
      'timers.decisionTimeoutMs',
    ],
    ['no words', { thresholdWordCount: 0 }, 'thresholdWordCount'],
    ['an unknown pace', { detection: 'slow' }, 'detection'],
    ['too many words', { thresholdWordCount: 1_001 }, 'thresholdWordCount'],
    ['half a word', { thresholdWordCount: 1.5 }, 'thresholdWordCount'],
    ['unknown AMD event', { amdEventsSubscription: ['amd_x'] }, 'amdEventsSubscription.0'],
    ['events without a URL', { notifyEvents: ['ringing'] }, 'notifyEvents'],
    ['events that are no list', { notifyEvents: 'ringing' }, 'notifyEvents'],
    ['more events than there are', { notifyEvents: Array(65).fill('ringing') }, 'notifyEvents'],
    [
      'a speech-to-text provider without a name',
      { callControlParameter: { sttProvider: '', sttLanguage: 'en-US' } },
      'callControlParameter.sttProvider',
    ],
    [
      'speech-to-text without a language',
      { callControlParameter: { sttProvider: 'acme' } },
      'callControlParameter.sttLanguage',
    ],
    [
      'a label with a control character',
      {
        callControlParameter: {
          sttProvider: 'our-engine',
          sttLanguage: 'en-US',
          sttLabel: 'a\u0000b',
        },
      },
      'callControlParameter.sttLabel',
    ],
    ['null for an optional member', { timeoutInMs: null }, 'timeoutInMs'],
  ])('%s is refused', async (_name, extra, path) => {
    expect(await refused({ ...minimal, ...extra })).toEqual([path]);
  });

  test('a call duration over the limit is refused with the name of the setting', async () => {
    const body = { ...minimal, maxDurationMs: 7_200_001 };

    expect((await dial(harness, body)).json<ProblemDocument>().errors).toEqual([
      {
        path: 'maxDurationMs',
        message: 'must be at most 7200000, the MAX_CALL_DURATION_MS of this gateway',
      },
    ]);
  });

  test('all problems are listed at once', async () => {
    expect(
      await refused({
        bot: 'st-2',
        target: 'tel:x',
        timeoutInMs: 1,
        timers: { toneTimeoutMs: -1, toneTimeoutMS: 1 },
      }),
    ).toEqual(
      expect.arrayContaining([
        'botId',
        'target',
        'caller',
        'timeoutInMs',
        'timers.toneTimeoutMs',
        'timers.toneTimeoutMS',
      ]),
    );
  });

  test('a missing member is reported as required', async () => {
    const response = await dial(harness, {});

    expect(response.json<ProblemDocument>().errors).toEqual(
      ['botId', 'target', 'caller'].map((path) => ({ path, message: 'is required' })),
    );
  });
});

describe('notifyHeaders', () => {
  test.each([
    'Host',
    'Connection',
    'Keep-Alive',
    'Proxy-Authorization',
    'Proxy-Connection',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Expect',
    'HTTP2-Settings',
    'User-Agent',
    'Content-Length',
    'content-encoding',
    'Gateway-Signature',
    'webhook-id',
    'Webhook-Timestamp',
    'webhook-signature',
    'bad name',
    'bad\r\nname',
    '',
  ])('refuses %j and names it', async (name) => {
    const response = await dial(harness, { ...minimal, notifyHeaders: { [name]: 'x' } });

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors).toEqual([
      {
        path: `notifyHeaders.${name}`,
        message: expect.stringContaining(name),
      },
    ]);
  });

  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['a line end in a value', { 'X-A': 'a\r\nb' }],
    ['a value that is not ASCII', { 'X-A': 'ü' }],
    ['a value that is no string', { 'X-A': 1 }],
    ['another content type', { 'Content-Type': 'text/xml' }],
  ])('%s is refused', async (_name, notifyHeaders) => {
    const [path] = await refused({ ...minimal, notifyHeaders });

    expect(path).toMatch(/^notifyHeaders\./);
  });

  test('refuses a name that occurs twice', async () => {
    expect(await refused({ ...minimal, notifyHeaders: { 'X-A': '1', 'x-a': '2' } })).toEqual([
      'notifyHeaders.x-a',
    ]);
  });

  test('limits the number and size of headers', async () => {
    const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`x-${index}`, '']));

    expect(await refused({ ...minimal, notifyHeaders: many })).toEqual(['notifyHeaders']);
    expect(await refused({ ...minimal, notifyHeaders: { 'x-a': 'y'.repeat(4_200) } })).toEqual([
      'notifyHeaders',
    ]);
  });
});

describe('W3C Trace Context', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const traceOf = async (headers: Readonly<Record<string, string>>) => {
    const { traceparent: parent, tracestate } = (await accepted({}, headers)).request;
    return [parent, tracestate];
  };

  test('is passed on with the call', async () => {
    const tracestate = 'congo=t61rcWkgMzE';
    expect(await traceOf({ traceparent, tracestate })).toEqual([traceparent, tracestate]);
  });

  test('is dropped if it is malformed, and the call is accepted', async () => {
    expect(await traceOf({ traceparent, tracestate: 'A=1' })).toEqual([traceparent, undefined]);
    expect(await traceOf({ traceparent: 'none', tracestate: 'a=1' })).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe('Idempotency-Key', () => {
  test('is passed to the intake with a hash that spelling and order do not change', async () => {
    const key = { 'idempotency-key': 'order-4711' };
    const first = await accepted({ metadata: { a: 1, b: 2 }, timeoutInMs: 60_000 }, key);
    const same = await accepted({ bot: 'st-1', metadata: { b: 2, a: 1 }, extra: true }, key);
    const other = await accepted({ metadata: { a: 1, b: 3 } }, key);

    expect(first.idempotency?.key).toBe('order-4711');
    expect(same.idempotency).toEqual(first.idempotency);
    expect(other.idempotency?.requestHash).not.toBe(first.idempotency?.requestHash);
  });

  test('with other notify headers identifies another request', async () => {
    const key = { 'idempotency-key': 'order-4711' };
    const first = await accepted({ notifyHeaders: { 'x-a': '1' } }, key);
    const other = await accepted({ notifyHeaders: { 'x-a': '2' } }, key);

    expect(other.idempotency?.requestHash).not.toBe(first.idempotency?.requestHash);
  });

  test('repeats the first answer for a repeated request, and marks it as replayed', async () => {
    harness.result = { kind: 'replayed', answer };

    const response = await dial(harness, minimal, { 'idempotency-key': 'k' });

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(answer);
    expect(response.headers['idempotent-replayed']).toBe('true');
  });

  test('of another request is a 409', async () => {
    harness.result = { kind: 'conflict' };

    const response = await dial(harness, minimal, { 'idempotency-key': 'k' });

    expect(response.statusCode).toBe(409);
    expect(response.json<ProblemDocument>().type).toBe('urn:offhook:problem:idempotency-conflict');
  });

  test.each(['', 'a b', 'ü', 'x'.repeat(256)])('%j is invalid', async (key) => {
    expect(await refused(minimal, { 'idempotency-key': key })).toEqual(['Idempotency-Key']);
  });
});

describe('an intake that refuses', () => {
  test('because it is full is a 429 with Retry-After', async () => {
    harness.result = { kind: 'full', retryAfterS: 7 };

    const response = await dial(harness, minimal);

    expect(response.statusCode).toBe(429);
    expect(response.headers['retry-after']).toBe('7');
  });

  test('because the database is unreachable is a 503 that does not reveal its address', async () => {
    harness.result = { kind: 'unavailable', reason: 'postgres at 10.0.0.5', retryAfterS: 3 };

    const response = await dial(harness, minimal);

    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('3');
    expect(response.body).not.toContain('10.0.0.5');
    expect(response.json()).toMatchObject({
      type: 'urn:offhook:problem:unavailable',
      detail: 'Nothing was accepted. Try again shortly.',
    });
  });

  test.each([
    [{ 'idempotency-key': 'k' }, 'Repeat it with the same Idempotency-Key.'],
    [{}, 'It had no Idempotency-Key: if you repeat it, the phone may ring twice.'],
  ])('a lost answer is a 503 of the type acceptance-unknown: %j', async (headers, advice) => {
    const problem = {
      type: 'urn:offhook:problem:acceptance-unknown',
      detail: `It is not known whether the request was accepted. ${advice}`,
    };
    harness.result = { kind: 'unknown', reason: 'postgres at 10.0.0.5', retryAfterS: 3 };
    const lost = await dial(harness, minimal, headers);
    // The server throws this when the handler's time is over.
    harness.result = new errorCodes.FST_ERR_HANDLER_TIMEOUT();
    const late = await dial(harness, minimal, headers);

    for (const response of [lost, late]) {
      expect(response.statusCode).toBe(503);
      expect(response.json()).toMatchObject(problem);
      expect(response.body).not.toContain('10.0.0.5');
    }
    expect(lost.headers['retry-after']).toBe('3');
    expect(late.headers['retry-after']).toBe('5');
  });

  test('an unexpected error is a 500 that reveals only the request id', async () => {
    harness.result = new Error('secret detail');

    const response = await dial(harness, minimal);

    expect(response.statusCode).toBe(500);
    expect(response.body).not.toContain('secret detail');
    expect(response.json<ProblemDocument>().requestId).toBe(response.headers['x-request-id']);
  });
});

function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)];
}
