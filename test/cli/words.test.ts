// Tests how commands read their arguments, and how the demo judges its notifications.

import { beforeEach, describe, expect, test } from 'vitest';
import type { BotCallSummary } from '../../src/cli/bot/bot-events.ts';
import { dialRequest, targetOf } from '../../src/cli/calls/dial-options.ts';
import { describeConversation, problemsOfConversation } from '../../src/cli/demo/conversation.ts';
import { problemsOf, type Scene, scenes } from '../../src/cli/demo/scenes.ts';
import { describeTransfer, problemsOfTransfer } from '../../src/cli/demo/transfer.ts';
import {
  createNotificationLines,
  type NotificationLines,
} from '../../src/cli/notification-lines.ts';
import type { ReceivedNotification } from '../../src/cli/receiver.ts';
import { parseDurationS } from '../../src/lib/durations.ts';

describe('a duration', () => {
  test.each([
    ['90', 90],
    ['90s', 90],
    ['15m', 900],
    ['1h', 3_600],
    ['7d', 604_800],
  ])('%s is %i seconds', (text, seconds) => {
    expect(parseDurationS(text)).toBe(seconds);
  });

  test.each(['', 'h', '-1h', '1.5h', '1w', '1h30m', 'soon'])('%j is not a duration', (text) => {
    expect(parseDurationS(text)).toBeUndefined();
  });
});

describe('a target', () => {
  test.each([
    ['tel:+15551234567', 'tel:+15551234567'],
    ['sip:bob@127.0.0.1', 'sip:bob@127.0.0.1'],
    ['+1-555-123-4567', 'tel:+1-555-123-4567'],
    ['+1 (202) 555-0110', 'tel:+1(202)555-0110'],
    ['tel:2025550110', 'tel:2025550110'],
    ['talker', 'tel:+12025550104'],
    ['person', 'tel:+12025550100'],
  ])('%s is dialled as %s', (text, target) => {
    expect(targetOf(text)).toBe(target);
  });

  test('an unknown word is refused with a list of names', () => {
    expect(() => targetOf('hugo')).toThrow(/person, person-hangs-up/);
  });

  test.each([
    ['2025550110', 'write +12025550110 for a North American number'],
    ['(202) 555-0110', 'write +12025550110 for a North American number'],
    ['12025550130', 'write +12025550130 for a North American number'],
    ['06 12345678', 'write it with + and its country code'],
    ['4930901820123', 'write +4930901820123'],
    ['0171 1234567', 'write it with + and its country code, e.g. +12025550110'],
    ['110', 'write it with + and its country code'],
  ])('%s has no country code, and the error advises how to write it', (text, advice) => {
    expect(() => targetOf(text)).toThrow(`"${text}" has no country code: ${advice}`);
  });
});

describe('a dial-out request', () => {
  const usual = { amd: 'disabled', caller: '1' };
  const request = (options: object) => dialRequest('person', undefined, { ...usual, ...options });

  test('contains only the given options', () => {
    expect(request({})).toEqual({
      target: 'tel:+12025550100',
      caller: '1',
      machineDetection: 'disabled',
    });
    expect(
      request({
        timeout: '5000',
        maxDuration: '10m',
        metadata: '{"a":1}',
        header: ['X-A: b: c', 'X-D:e'],
        timer: ['toneTimeoutMs=500'],
        detection: 'careful',
        thresholdWordCount: '6',
        notifyEvents: 'ringing, transfer-*',
        optOutKey: '9',
        optOutSound: 'sound:goodbye',
      }),
    ).toMatchObject({
      timeoutInMs: 5_000,
      maxDurationMs: 600_000,
      metadata: { a: 1 },
      notifyHeaders: { 'X-A': 'b: c', 'X-D': 'e' },
      timers: { toneTimeoutMs: 500 },
      detection: 'careful',
      thresholdWordCount: 6,
      notifyEvents: ['ringing', 'transfer-*'],
      optOutKey: '9',
      optOutSound: 'sound:goodbye',
    });
  });

  test('contains who calls', () => {
    const identity = 'a.b.c;info=<https://cert.example/a.pem>';
    const who = { callerName: 'Ada', sipHeader: ['Diversion: <sip:1@pbx.example>'], identity };
    expect(request({ ...who, bridge: 'person', bridgeCallerName: 'Bob' })).toMatchObject({
      callerName: 'Ada',
      headers: { Diversion: '<sip:1@pbx.example>' },
      identity,
      bridge: { callerName: 'Bob' },
    });
    expect(() => request({ sipHeader: ['Diversion'] })).toThrow(
      "--sip-header Diversion: must be 'Name: value'",
    );
  });

  test.each([
    ['5000', 5_000],
    ['90s', 90_000],
    ['1h', 3_600_000],
  ])('--max-duration %s is %i ms', (maxDuration, maxDurationMs) => {
    expect(request({ maxDuration })).toMatchObject({ maxDurationMs });
  });

  test('--max-duration rejects other words', () => {
    expect(() => request({ maxDuration: 'long' })).toThrow('--max-duration must be milliseconds');
  });

  test('contains the given plans', () => {
    const voicemail = 'sound:offer';
    expect(request({ voicemail })).toMatchObject({ voicemail: { play: 'sound:offer' } });
    expect(request({ voicemail, ifNoBeep: 'hangup', screening: 'sound:who' })).toMatchObject({
      voicemail: { play: 'sound:offer', ifNoBeep: 'hangup' },
      screening: { play: 'sound:who' },
    });
    expect(() => request({ ifNoBeep: 'hangup' })).toThrow('--if-no-beep');
    expect(request({ bridge: 'agent' })['bridge']).toEqual({ to: 'tel:+12025550105' });
    const bridge = 'sip:agents@pbx.example';
    const how = { bridgeOn: 'person', bridgeMode: 'refer', bridgeCaller: '49301234' };
    expect(request({ bridge, ...how, bridgeTimeout: '20000' })['bridge']).toEqual({
      ...{ to: bridge, on: 'person', mode: 'refer', timeoutMs: 20_000, caller: '49301234' },
    });
    expect(() => request({ bridgeOn: 'person' })).toThrow('require --bridge');
    expect(() => request({ bridge, bridgeTimeout: '20s' })).toThrow('--bridge-timeout must be');
  });

  test.each([
    [{ streamUrl: 'ws://127.0.0.1:4001/' }, { url: 'ws://127.0.0.1:4001/' }],
    [
      { streamConnect: 'person', streamParameter: ['campaign=spring', 'rule=a=b'] },
      { connect: 'person', parameters: { campaign: 'spring', rule: 'a=b' } },
    ],
    [{ stream: false }, null],
    [{ stream: true }, undefined],
  ])('with the options %j has the stream %j', (options, stream) => {
    expect(request(options)['stream']).toEqual(stream);
  });

  test('contradictory stream options are refused', () => {
    expect(() => request({ stream: false, streamConnect: 'person' })).toThrow(
      '--no-stream cannot be combined',
    );
    expect(() => request({ streamParameter: ['spring'] })).toThrow('must be name=value');
  });

  test.each([
    [{ metadata: '{a:1}' }, /^--metadata is not JSON; e\.g\./],
    [{ metadata: '[1]' }, /^--metadata must be a JSON object/],
    [{ header: ['X-A'] }, /^--header X-A: must be 'Name: value'/],
    [{ timer: ['toneTimeout=5'] }, /^--timer toneTimeout=5: .*toneTimeoutMs/],
    [{ timer: ['toneTimeoutMs=soon'] }, /^--timer toneTimeoutMs=soon/],
    [{ thresholdWordCount: 'six' }, /^--threshold-word-count must be a number/],
    [{ timeout: '5s' }, /^--timeout must be a number/],
  ])('%j is refused with a reason', (options, message) => {
    expect(() => request(options)).toThrow(message);
  });
});

describe('a notification in one line', () => {
  let write: NotificationLines;
  beforeEach(() => {
    write = createNotificationLines();
  });
  const lineOf = (members: object): string => {
    const common = { callId: 'call-1', sequence: 4, timestamp: '2026-11-20T08:00:00.000Z' };
    return write({
      headers: {},
      rawBody: '',
      body: { ...common, status: 'completed', reasonCode: 'Caller-disconnected', ...members },
      verified: true,
    });
  };
  const amd = (machineDetection: string, reason: string, callId = 'call-1') =>
    lineOf({ callId, status: 'Call-In-Progress', machineDetection, amd: { reason } });

  test('shows the duration of the call to the millisecond', () => {
    expect(lineOf({ callDuration: 8, callDurationMs: 7_982 })).toContain(
      '#4 completed         Caller-disconnected, 7.982 s ',
    );
  });

  test.each([
    [{ type: 'dtmf', data: { digit: '5', source: 'rtp' } }, 'dtmf 5'],
    [{ type: 'transfer-ringing', data: { to: 'sip:a@b', sipStatus: 180 } }, 'transfer-ringing'],
    [{ type: 'of-a-later-version', data: {} }, 'of-a-later-version'],
    ['not an event', ''],
  ])('shows the details of the event %j', (event, details) => {
    expect(lineOf({ status: 'Event', event })).toContain(`#4 Event             ${details} `);
  });

  test('shows at the end who picked up, from all notifications of the call', () => {
    const end = (machineDetection: string, callId = 'call-1') =>
      lineOf({ callId, callDurationMs: 7_982, machineDetection });

    expect(end('amd_human_detected')).toContain('Caller-disconnected, 7.982 s, person ');
    expect(amd('amd_machine_detected', 'long-greeting')).toContain(
      'amd_machine_detected (long-greeting) ',
    );
    amd('amd_tone_detected', 'beep');
    amd('amd_machine_detected', 'fax-tone', 'call-2');
    expect(end('amd_machine_detected')).toContain('7.982 s, machine, beep ');
    expect(end('amd_machine_detected', 'call-2')).toContain('7.982 s, fax ');
    // The formatter forgets a call at its end.
    expect(end('amd_machine_detected')).toContain('7.982 s, machine ');
    // Another version may have other verdicts.
    expect(end('amd_parrot_detected')).toContain('7.982 s, amd_parrot_detected ');
  });
});

describe('the demo', () => {
  const body = (sequence: number, members: object) => ({
    callId: 'call-1',
    sequence,
    timestamp: '2026-11-20T08:00:00.000Z',
    ...members,
  });
  const received = (...bodies: readonly object[]): ReceivedNotification[] =>
    bodies.map((members, index) => ({
      headers: {},
      rawBody: '',
      body: body(index + 1, members),
      verified: true,
    }));
  const amd = (machineDetection: string) => ({ status: 'Call-In-Progress', machineDetection });
  const sceneOf = (name: string): Scene => {
    const scene = scenes.find((candidate) => candidate.name === name);
    if (scene === undefined) throw new Error(`no scene ${name}`);
    return scene;
  };

  test.each([
    ['the tone after the end of the greeting', 'amd_machine_stopped_speaking', 'amd_tone_detected'],
    ['the tone before it', 'amd_tone_detected', 'amd_machine_stopped_speaking'],
  ])('accepts a voicemail with %s', (_name, first, second) => {
    const notifications = received(
      { status: 'Answered', reasonCode: 'OK' },
      amd('amd_machine_detected'),
      amd(first),
      amd(second),
      amd('amd_stopped'),
      {
        status: 'completed',
        machineDetection: 'amd_machine_detected',
        reasonCode: 'Bot-disconnected',
      },
    );

    expect(problemsOf(sceneOf('voicemail'), notifications)).toEqual([]);
  });

  test('lists missing notifications', () => {
    const notifications = received({ status: 'Answered', reasonCode: 'OK' }, amd('amd_stopped'), {
      status: 'completed',
    });

    expect(problemsOf(sceneOf('person'), notifications)).toEqual([
      'missing: Call-In-Progress, amd_human_detected',
      'missing: completed, amd_human_detected',
    ]);
  });

  test('rejects the right events in the wrong order', () => {
    const notifications = received(
      amd('amd_human_detected'),
      { status: 'Answered', reasonCode: 'OK' },
      amd('amd_stopped'),
      { status: 'completed', machineDetection: 'amd_human_detected' },
    );

    expect(problemsOf(sceneOf('person'), notifications)).not.toEqual([]);
  });

  test('rejects an unsigned notification, and a gap', () => {
    const failed = { status: 'Failed', reason: '486 Busy Here', reasonCode: 'Busy here' };
    const [good] = received(failed);
    if (good === undefined) throw new Error('nothing received');

    expect(problemsOf(sceneOf('busy'), [good])).toEqual([]);
    expect(problemsOf(sceneOf('busy'), [{ ...good, verified: false }])).toEqual([
      'a signature is wrong',
    ]);
    expect(problemsOf(sceneOf('busy'), [{ ...good, body: body(2, failed) }])).toEqual([
      'the sequence has gaps or is out of order',
    ]);
  });
});

describe('the report of the conversation', () => {
  const bot: BotCallSummary = {
    type: 'ended',
    callId: 'call-1',
    code: 1000,
    voiceMs: 3_500,
    turns: 3,
    linesSaid: 3,
    interruptions: 1,
  };
  const talker = { voiceMs: 7_300, turns: 3, answers: 1, silencedAfterMs: 180 };

  test('has the measurements of both sides', () => {
    expect(problemsOfConversation({ bot, talker })).toEqual([]);
    expect(describeConversation({ bot, talker })).toEqual([
      'the bot heard 3.5 s of voice in 3 turns',
      'the talker heard 7.3 s of voice in 3 turns',
      'when the talker interrupted, the bot fell silent after 180 ms',
    ]);
  });

  test.each([
    ['one side reported nothing', { bot }],
    ['the bot heard 0 of 3 turns', { bot: { ...bot, turns: 0 }, talker }],
    ['the bot was interrupted 0 times', { bot: { ...bot, interruptions: 0 }, talker }],
    ['the talker gave no answer', { bot, talker: { ...talker, answers: 0 } }],
    ['the bot did not fall silent', { bot, talker: { voiceMs: 1, turns: 3, answers: 1 } }],
  ])('reports: %s', (problem, conversation) => {
    expect(problemsOfConversation(conversation)).toEqual([problem]);
  });
});

describe('the report of the transfer', () => {
  const person = { voiceMs: 6_000, turns: 3, answers: 1 };
  const agent = { voiceMs: 1_840, turns: 1, answers: 1 };
  const msToTwoWayAudio = 18;

  test('has the measurements of both phones and of the gateway', () => {
    expect(problemsOfTransfer({ person, agent, msToTwoWayAudio })).toEqual([]);
    expect(describeTransfer({ person, agent, msToTwoWayAudio })).toBe(
      "audio went both ways 18 ms after the agent's answer, the agent heard 1.8 s of the person's voice, the person heard the agent 2 times",
    );
  });

  test.each([
    ['one side of the transfer reported nothing', { person, msToTwoWayAudio }],
    [
      'the agent did not hear the person',
      { person, agent: { ...agent, turns: 0 }, msToTwoWayAudio },
    ],
    ['the person heard 1 of 3 turns', { person: { ...person, turns: 1 }, agent, msToTwoWayAudio }],
    ['no audio went both ways', { person, agent }],
  ])('reports: %s', (problem, transfer) => {
    expect(problemsOfTransfer(transfer)).toEqual([problem]);
  });
});
