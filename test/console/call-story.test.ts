// The first sentences of a call's page, over everything that may become of a call.

import { describe, expect, test } from 'vitest';
import { callOutcomes } from '../../src/calls/contract/call-words.ts';
import { endsOfAllKinds, faultOf } from '../../src/calls/life/call-outcome.ts';

type Event = readonly [type: string, atMs: number, data?: object];
type Sentence = { readonly text: string; readonly code?: string };

const { storyOf } = (await import(
  new URL('../../src/console/page/call-story.js', import.meta.url).href
)) as { readonly storyOf: (call: object) => readonly Sentence[] };

const acceptedMs = Date.parse('2026-11-28T09:00:00Z');
const iso = (ms: number) => new Date(acceptedMs + ms).toISOString();
const timelineOf = (events: readonly Event[]) =>
  events.map(([type, atMs, data = {}]) => ({ type, time: iso(atMs), data }));

const say = (call: object) =>
  storyOf(call)
    .map(({ text }) => text)
    .join(' ');

/** A call that nobody has answered, by its terminal event. */
function unanswered(end: Record<string, unknown>, ...before: readonly Event[]) {
  const { outcome, rule, notBefore, sipStatus, reason, block, fault } = end;
  return say({
    ...{ state: 'ended', outcome, rule, notBefore, sipStatus, reason, block, fault },
    timeline: timelineOf([...before, ['failed', 30_000, { ringDurationInMS: 0, ...end }]]),
  });
}

type Answered = {
  readonly detection?: string;
  readonly amd?: readonly Record<string, unknown>[];
  readonly events?: readonly Event[];
  readonly end?: Record<string, unknown>;
};

/** A call that rang for 4 s and ended 12.4 s after its answer. */
function answered({ detection = 'detect', amd = [], events = [], end }: Answered) {
  const done = { outcome: 'completed', reason: '200 OK', reasonCode: 'Caller-disconnected' };
  return say({
    ...{ state: end === undefined ? 'answered' : 'ended', machineDetection: detection },
    ...{ ringingAt: iso(1_000), answeredAt: iso(5_000) },
    ...(end === undefined ? {} : { endedAt: iso(17_400) }),
    timeline: timelineOf([
      ['answered', 5_000],
      ...amd.map((one) => ['amd', 5_000 + Number(one['elapsedMs']), { amd: one }] satisfies Event),
      ...events,
      ...(end === undefined ? [] : [['completed', 17_400, { ...done, ...end }] satisfies Event]),
    ]),
  });
}

const person = {
  ...{ event: 'amd_human_detected', reason: 'short-greeting', elapsedMs: 1_640 },
  ...{ confidence: 0.93, words: 2 },
};
const machine = {
  ...{ event: 'amd_machine_detected', reason: 'dense-speech', elapsedMs: 4_100 },
  ...{ confidence: 0.95, words: 11, speechMs: 3_800, spanMs: 3_900 },
};
const beep = {
  ...{ event: 'amd_tone_detected', reason: 'beep', elapsedMs: 8_000 },
  tone: { hz: 1_000, ms: 300 },
};
const personSentence =
  'A person answered, recognised after 1.6 s (93 % sure, a short greeting of 2 words).';
const machineSentence =
  'A machine answered, recognised after 4.1 s (95 % sure, 11 words without a pause).';
const begun = (atMs: number, more: object = {}): Event => [
  ...(['playback-started', atMs] as const),
  { source: 'voicemail', sound: 'sound:autumn', afterBeep: true, ...more },
];
const left = (more: object = {}) => ({
  ...{ outcome: 'voicemail-left', reasonCode: 'Bot-disconnected' },
  voicemail: { durationMs: 3_200, complete: true, afterBeep: true, ...more },
});
const ended = (more: object = {}) => ({ outcome: 'completed', ...more });

describe('the story of a call that nobody answered', () => {
  test.each([
    [{ outcome: 'busy', sipStatus: 486 }, 'The line was busy.'],
    [{ outcome: 'declined', sipStatus: 603 }, 'The call was declined.'],
    [{ outcome: 'declined', sipStatus: 607 }, 'The call was declined as unwanted.'],
    [{ outcome: 'blocked' }, 'A carrier blocked the call.'],
    [
      { outcome: 'blocked', block: { by: 'filter.example' } },
      'A carrier blocked the call, filter.example by its own words.',
    ],
    [{ outcome: 'no-answer' }, 'Nobody answered.'],
    [
      { outcome: 'no-answer', ringDurationInMS: 25_000 },
      'Nobody answered after ringing for 25.0 s.',
    ],
    [{ outcome: 'unavailable' }, 'The phone could not be reached.'],
    [{ outcome: 'invalid-number' }, 'The number does not exist, says the carrier.'],
    [
      { outcome: 'rejected', fault: 'carrier', reason: '403 Forbidden' },
      'The carrier refused the call (403 Forbidden).',
    ],
    [
      { outcome: 'rejected', fault: 'callee', reason: '606 Not Acceptable' },
      'The phone refused the call (606 Not Acceptable).',
    ],
    [
      { outcome: 'rejected', fault: 'gateway', reason: '401 Unauthorized' },
      'The carrier does not accept the trunk’s credentials (401 Unauthorized).',
    ],
    [
      { outcome: 'carrier-failure', reason: '503 Service Unavailable' },
      'The carrier did not place the call (503 Service Unavailable).',
    ],
    [
      { outcome: 'gateway-failure', reason: 'drachtio connection lost' },
      'The gateway could not place the call: drachtio connection lost.',
    ],
    [{ outcome: 'cancelled' }, 'The call was cancelled before it was placed.'],
    [{ outcome: 'expired' }, 'The call waited too long for its trunk and was not placed.'],
    [{ outcome: 'not-permitted', rule: 'hours' }, 'Not placed: outside the calling hours.'],
    [
      { outcome: 'unknown', reason: 'Gateway lost while the call was being placed' },
      'Gateway lost while the call was being placed. It is not known whether a phone rang.',
    ],
    [{ outcome: 'of-tomorrow' }, 'Not answered: of-tomorrow.'],
  ])('%o', (end, text) => {
    expect(unanswered(end)).toBe(text);
  });

  test('says when a rule permits the call, and what was tried before', () => {
    expect(unanswered({ outcome: 'not-permitted', rule: 'rest', notBefore: iso(0) })).toMatch(
      /^Not placed: the number was reached too recently\. It is permitted from .+\.$/,
    );
    const dialing: Event = ['dialing', 100];
    expect(unanswered({ outcome: 'cancelled', ringDurationInMS: 8_000 }, dialing)).toBe(
      'The call was cancelled after ringing for 8.0 s, before anybody answered.',
    );
    expect(unanswered({ outcome: 'busy', failedAttempts: [{}, {}] }, dialing)).toBe(
      'The line was busy. Before that, 2 other gateways of the trunk failed.',
    );
  });

  test('has a sentence for every outcome and fault, with the code', () => {
    const ends = [...endsOfAllKinds(), ...callOutcomes.map((outcome) => ({ outcome }))];
    for (const end of ends) {
      const call = { ...end, fault: faultOf(end), reason: '4xx', state: 'ended', timeline: [] };
      const [{ text, code } = { text: '' }] = storyOf(call);
      expect(text).toMatch(/^[A-Z4].*\.$/);
      expect(text).not.toMatch(/undefined|NaN/);
      expect(code).toContain(end.outcome);
    }
  });

  test.each([
    [{ state: 'queued' }, 'The call waits for its trunk.'],
    [{ state: 'queued', queuePosition: 3 }, 'The call waits for its trunk, as number 3.'],
    [{ state: 'dialing' }, 'The call is being placed.'],
    [{ state: 'ringing' }, 'The phone rings.'],
  ])('before its end: %o', (call, text) => {
    expect(say({ ...call, timeline: [] })).toBe(text);
  });

  test('while a rule holds it', () => {
    const waitsFor = { rule: 'hours', until: iso(0) };
    expect(say({ state: 'queued', waitsFor, timeline: [] })).toMatch(
      /^Held: outside the calling hours\. It is checked again at .+\.$/,
    );
  });
});

describe('the story of a call that was answered', () => {
  test.each<[name: string, call: Answered, text: string]>([
    [
      'up, no verdict yet',
      {},
      'The call was answered after ringing for 4.0 s. Detection is listening.',
    ],
    [
      'up, not detected',
      { detection: 'disabled' },
      'The call was answered after ringing for 4.0 s.',
    ],
    [
      'ended before a verdict',
      { end: ended() },
      'The call was answered after ringing for 4.0 s, and ended before it was known by whom. The far end hung up after 12.4 s.',
    ],
    [
      'person',
      { amd: [person], end: ended() },
      `${personSentence} The person hung up after 12.4 s.`,
    ],
    [
      'person, the bot hangs up',
      {
        amd: [person],
        events: [['stream-stopped', 17_000, { reason: 'bot-closed' }]],
        end: ended({ reasonCode: 'Bot-disconnected' }),
      },
      `${personSentence} The bot hung up after 12.4 s.`,
    ],
    [
      'person, the application hangs up',
      { amd: [person], end: ended({ reasonCode: 'Bot-disconnected' }) },
      `${personSentence} The application or its bot hung up after 12.4 s.`,
    ],
    [
      'longest duration',
      { amd: [person], end: ended({ reasonCode: 'Gateway-disconnected' }) },
      `${personSentence} The call reached its longest duration and was ended after 12.4 s.`,
    ],
    [
      'lost gateway',
      { amd: [person], end: ended({ outcome: 'gateway-failure', reason: 'Gateway restarted' }) },
      `${personSentence} The gateway ended the call after 12.4 s: Gateway restarted.`,
    ],
    [
      'machine, message after the beep',
      { amd: [machine, beep], events: [begun(13_020)], end: left() },
      `${machineSentence} Your message (3.2 s) was left 20 ms after the beep. The gateway hung up after 12.4 s.`,
    ],
    [
      'machine, message without a beep',
      { amd: [machine], events: [begun(13_020, { afterBeep: false })], end: left() },
      `${machineSentence} Your message (3.2 s) was left without a beep. The gateway hung up after 12.4 s.`,
    ],
    [
      'message begun again, not whole',
      {
        amd: [machine, beep],
        events: [begun(14_000, { restart: 1 })],
        end: left({ complete: false }),
      },
      `${machineSentence} Only 3.2 s of your message were left, after the beep, and began 2 times. The gateway hung up after 12.4 s.`,
    ],
    [
      'message under way',
      { amd: [machine, beep], events: [begun(14_500)] },
      `${machineSentence} Your message began 1.5 s after the beep.`,
    ],
    [
      'machine, no message',
      { amd: [machine, beep], end: ended({ outcome: 'machine' }) },
      `${machineSentence} A beep came after 8.0 s. No message was left. The gateway hung up after 12.4 s.`,
    ],
    [
      'corrected by a beep',
      { amd: [person, { ...beep, corrects: 'amd_human_detected' }], end: ended() },
      'At first it sounded like a person, after 1.6 s (93 % sure, a short greeting of 2 words). After 8.0 s, a beep of 1000 Hz, 300 ms showed that it was a machine. The far end hung up after 12.4 s.',
    ],
    [
      'fax',
      { amd: [{ ...beep, event: 'amd_machine_detected', reason: 'fax-tone' }] },
      'A fax machine answered, recognised after 8.0 s (the tone of a fax machine).',
    ],
    [
      'announcement of the network',
      { amd: [{ ...beep, event: 'amd_machine_detected', reason: 'sit-tone' }] },
      'An announcement of the network answered, recognised after 8.0 s (the three tones before an announcement).',
    ],
    [
      'call screener, then a person',
      {
        amd: [
          { event: 'amd_machine_detected', reason: 'call-screening', elapsedMs: 3_000 },
          { event: 'amd_stopped', reason: 'screened', elapsedMs: 5_000 },
          { ...person, round: 2 },
        ],
      },
      `A call screener answered, recognised after 3.0 s (it asked who is calling). Then ${personSentence.replace('A person', 'a person')}`,
    ],
    [
      'call screener that is not answered',
      {
        amd: [
          { event: 'amd_machine_detected', reason: 'call-screening', elapsedMs: 3_000 },
          { event: 'amd_stopped', reason: 'human-after-screening', elapsedMs: 5_000 },
        ],
      },
      'A call screener answered, recognised after 3.0 s (it asked who is calling). After its question, a person spoke.',
    ],
    [
      'nobody speaks',
      { amd: [{ event: 'amd_no_speech_detected', reason: 'no-speech', elapsedMs: 5_000 }] },
      'The call was answered, but nobody spoke for 5.0 s.',
    ],
    [
      'undecided',
      { amd: [{ event: 'amd_decision_timeout', reason: 'undecided', elapsedMs: 10_000 }] },
      'It is not known who answered: after 10.0 s (what was said fits a person and a machine).',
    ],
    [
      'unheard',
      { amd: [{ event: 'amd_error', reason: 'audio-unheard', elapsedMs: 9_000, unheardMs: 900 }] },
      'It is not known who answered: the gateway was overloaded and did not hear 0.9 s of the call.',
    ],
    [
      'bot that did not come',
      {
        amd: [person],
        events: [['stream-failed', 9_000, { reason: 'ECONNREFUSED', willRetry: false }]],
        end: ended({ outcome: 'bot-failure' }),
      },
      `${personSentence} The bot did not come: nothing listens at its address. The gateway hung up after 12.4 s.`,
    ],
    [
      'bot that was lost',
      {
        amd: [person],
        events: [
          ['stream-started', 6_000],
          ['stream-failed', 9_000, { reason: 'closed-1006', willRetry: false }],
        ],
        end: ended({ outcome: 'bot-failure' }),
      },
      `${personSentence} The bot was lost: the connection broke. The gateway hung up after 12.4 s.`,
    ],
    [
      'bot that comes back',
      {
        amd: [person],
        events: [['stream-failed', 9_000, { reason: 'ECONNREFUSED', willRetry: true }]],
      },
      personSentence,
    ],
    [
      'transfer rings',
      { amd: [person], events: [['transfer-ringing', 9_000, { to: 'tel:+12025550105' }]] },
      `${personSentence} The phone of +12025550105 rings, for a transfer.`,
    ],
    [
      'transfer up',
      { amd: [person], events: [['transfer-answered', 9_000, { to: 'sip:agents@pbx' }]] },
      `${personSentence} The person is connected to agents@pbx.`,
    ],
    [
      'transfer over',
      {
        amd: [person],
        events: [
          [
            'transfer-completed',
            17_000,
            { to: 'sip:agents@pbx', outcome: 'completed', durationMs: 8_000 },
          ],
        ],
        end: ended(),
      },
      `${personSentence} The person was connected to agents@pbx for 8.0 s. The person hung up after 12.4 s.`,
    ],
    [
      'referred',
      {
        amd: [person],
        events: [['transfer-completed', 17_000, { to: 'sip:agents@pbx', outcome: 'transferred' }]],
        end: ended({ outcome: 'transferred' }),
      },
      `${personSentence} The carrier connected the person to agents@pbx.`,
    ],
    [
      'transfer failed',
      {
        amd: [person],
        events: [['transfer-failed', 9_000, { to: 'sip:agents@pbx', outcome: 'busy' }]],
      },
      `${personSentence} The transfer to agents@pbx failed: the line was busy.`,
    ],
    [
      'abandoned',
      {
        amd: [person],
        events: [['abandoned', 9_000, { missing: 'bot-or-agent' }]],
        end: ended({ abandoned: true }),
      },
      `${personSentence} Abandoned: neither a bot nor an agent reached the person within two seconds. The person hung up after 12.4 s.`,
    ],
    [
      'not abandoned after all',
      { amd: [person], events: [['abandoned', 9_000, { missing: 'agent' }]], end: ended() },
      `${personSentence} The person hung up after 12.4 s.`,
    ],
    [
      'opt-out',
      {
        amd: [person],
        events: [['opted-out', 9_000, { by: 'key' }]],
        end: ended({ reasonCode: 'Bot-disconnected', optedOut: true }),
      },
      `${personSentence} The person asked not to be called any more, by pressing a key. The number is suppressed. The application or its bot hung up after 12.4 s.`,
    ],
  ])('%s', (_name, call, text) => {
    expect(answered(call)).toBe(text);
  });
});
