// The one badge of a call: who picked up, and in words what became of it.

import { describe, expect, test } from 'vitest';
import { callFaults, callOutcomes, callStates } from '../../src/calls/contract/call-words.ts';
import { amdEventNames } from '../../src/calls/detection/amd-event.ts';
import { endsOfAllKinds, faultOf } from '../../src/calls/life/call-outcome.ts';
import { ruleNames } from '../../src/calls/rules/rule-words.ts';

type Result = {
  readonly who: string;
  readonly name: string;
  readonly detail: string | undefined;
  readonly words: string;
  readonly explanation: string;
  readonly isLive: boolean;
};

const { callResult } = (await import(
  new URL('../../src/console/page/call-result.js', import.meta.url).href
)) as {
  readonly callResult: (call: object, nowMs?: number) => Result;
};

/** Each of them has a colour in calls.css. */
const whoKinds = [
  ...['person', 'machine', 'unclear', 'nobody', 'failed'],
  ...['held', 'cancelled', 'waiting', 'ringing'],
];

const acceptedAt = '2026-11-28T09:00:00.000Z';
const ringingAt = '2026-11-28T09:00:01.000Z';
const answeredAt = '2026-11-28T09:00:04.000Z';
const endedAt = '2026-11-28T09:00:12.400Z';
const nowMs = Date.parse('2026-11-28T09:01:16.000Z');

const queued = { state: 'queued', status: 'queued', machineDetection: 'detect', acceptedAt };
const up = { ...queued, state: 'answered', status: 'answered', ringingAt, answeredAt };
const unanswered = { ...queued, state: 'ended', status: 'failed', ringingAt, endedAt };
const ended = { ...up, state: 'ended', status: 'completed', endedAt, outcome: 'completed' };

const person = { verdict: 'amd_human_detected', verdictReason: 'short-greeting' };
const machine = { verdict: 'amd_machine_detected', verdictReason: 'long-greeting' };

describe('a call in progress', () => {
  test.each([
    [queued, 'waiting', 'Queued', 'waits for its trunk'],
    [{ ...queued, queuePosition: 3 }, 'waiting', 'Queued · no. 3', 'trunk, as number 3.'],
    [
      { ...queued, state: 'dialing', status: 'dialing' },
      'waiting',
      'Dialing',
      'The call is being placed.',
    ],
    [
      { ...queued, state: 'ringing', status: 'ringing', ringingAt },
      ...['ringing', 'Ringing · 1:15', 'The phone rings.'],
    ],
    [up, 'unclear', 'Answered · 1:12', 'Detection is listening.'],
    [{ ...up, machineDetection: 'disabled' }, 'unclear', 'Answered · 1:12', 'Detection is off.'],
    [{ ...up, ...person }, 'person', 'Person · 1:12', 'A person answered.'],
    [{ ...up, ...machine }, 'machine', 'Machine · 1:12', 'A machine answered.'],
  ] as const)('%j', (call, who, words, explained) => {
    const result = callResult(call, nowMs);

    expect(result).toMatchObject({ who, words, isLive: words.includes('1:') });
    expect(result.explanation).toContain(explained);
  });

  test.each([
    ['suppressed', 'Held: suppressed', 'the number is suppressed'],
    ['hours', 'Held: outside hours', 'outside the calling hours'],
    ['attempts', 'Held: called too often', 'the number was called too often'],
    ['rest', 'Held: reached recently', 'the number was reached too recently'],
    ['abandoned-rate', 'Held: too many abandoned', 'campaign’s calls were abandoned'],
  ])('that the rule %s holds', (rule, words, explained) => {
    const result = callResult({ ...queued, waitsFor: { rule, until: endedAt } }, nowMs);

    expect(result).toMatchObject({ who: 'held', name: words, isLive: false });
    expect(result.words).toMatch(/ · until .*\d\d:\d\d/);
    expect(result.explanation).toContain(explained);
    expect(result.explanation).toMatch(/It is checked again at .*\d\d:\d\d/);
  });
});

describe('a call that was answered and has ended', () => {
  const disconnect = { machineDetection: 'disconnect', outcome: 'machine' };
  test.each([
    [{ ...person }, 'person', 'Person · 8 s', 'A person answered.'],
    [{ ...machine }, 'machine', 'Machine · 8 s', 'A machine answered.'],
    [{ verdict: 'amd_tone_detected' }, 'machine', 'Machine · 8 s', 'A machine answered.'],
    [{ ...machine, verdictReason: 'fax-tone' }, 'machine', 'Fax · 8 s', 'A fax machine answered.'],
    [
      { ...machine, verdictReason: 'sit-tone' },
      ...['machine', 'Network announcement · 8 s', 'An announcement of the network answered.'],
    ],
    [
      { ...machine, verdictReason: 'call-screening' },
      ...['machine', 'Call screening · 8 s', 'A call screener answered.'],
    ],
    [{ verdict: 'amd_no_speech_detected' }, 'unclear', 'No speech · 8 s', 'nobody spoke'],
    [
      { verdict: 'amd_decision_timeout' },
      'unclear',
      'Undecided · 8 s',
      'It is not known who answered.',
    ],
    [{ verdict: 'amd_error' }, 'unclear', 'Detection failed · 8 s', 'detection failed'],
    [{}, 'unclear', 'Answered · 8 s', 'The call was answered.'],
    [{ ...person, outcome: 'transferred' }, 'person', 'Person · transferred', 'to an agent'],
    [{ outcome: 'transferred' }, 'unclear', 'Answered · transferred', 'to an agent'],
    [
      { ...machine, outcome: 'machine' },
      'machine',
      'Machine · no message left',
      'No message was left.',
    ],
    [{ ...machine, ...disconnect }, 'machine', 'Machine · hung up', 'The gateway hung up'],
    [
      { ...machine, ...disconnect, verdictReason: 'fax-tone' },
      ...['machine', 'Fax · hung up', 'The gateway hung up'],
    ],
    [
      { ...machine, outcome: 'voicemail-left' },
      ...['machine', 'Machine · message left', 'Your message was left.'],
    ],
    [{ outcome: 'voicemail-left' }, 'machine', 'Machine · message left', 'Your message was left.'],
    [
      { verdict: 'amd_no_speech_detected', outcome: 'voicemail-left' },
      ...['machine', 'No speech · message left', 'Your message was left.'],
    ],
    [
      { ...person, outcome: 'gateway-failure', fault: 'gateway', reason: 'Gateway restarted' },
      ...['failed', 'Gateway failed · 8 s', 'A person answered.'],
    ],
    [
      { outcome: 'bot-failure', fault: 'caller', reason: 'Bot unreachable' },
      ...['failed', 'Bot failed · 8 s', 'Reason: Bot unreachable.'],
    ],
  ] as const)('%j', (more, who, words, explained) => {
    const result = callResult({ ...ended, ...more });

    expect(result).toMatchObject({ who, words, isLive: false });
    expect(result.explanation).toContain(explained);
  });

  test.each([
    [{ reasonCode: 'Caller-disconnected', reason: '200 OK' }, 'The far end hung up.'],
    [{ reasonCode: 'Bot-disconnected' }, 'The application or its bot hung up.'],
    [
      { reasonCode: 'Gateway-disconnected', reason: 'Maximum call duration reached' },
      'The gateway hung up. Reason: Maximum call duration reached.',
    ],
    [
      { cause: { q850: 16 }, reason: '200 OK', sipStatus: 200 },
      'The call ended. Reason: Q.850 cause 16.',
    ],
  ])('%j', (more, explained) => {
    const { explanation } = callResult({ ...ended, ...person, ...more });

    expect(explanation).toBe(`A person answered. ${explained}`);
  });
});

describe('a call that was not answered', () => {
  test.each([
    ['busy', {}, 'nobody', 'Busy', 'The line was busy.'],
    ['declined', {}, 'nobody', 'Declined', 'The call was declined.'],
    ['no-answer', {}, 'nobody', 'No answer', 'Nobody answered after ringing for 11.4 s.'],
    ['unavailable', {}, 'nobody', 'Unavailable', 'The phone could not be reached'],
    [
      'invalid-number',
      {},
      'failed',
      'No such number',
      'The number does not exist, says the carrier.',
    ],
    ['blocked', {}, 'failed', 'Blocked by carrier', 'A carrier blocked the call.'],
    [
      ...(['blocked', { block: { by: 'filter.example' } }, 'failed'] as const),
      ...['Blocked by carrier', 'A carrier blocked the call, filter.example by its own words.'],
    ],
    ['rejected', {}, 'failed', 'Rejected by carrier', 'The carrier refused the call.'],
    ['rejected', { sipStatus: 407 }, 'failed', 'Trunk login refused', 'the trunk’s credentials'],
    ['rejected', { sipStatus: 606 }, 'failed', 'Rejected by callee', 'The phone refused the call.'],
    ['carrier-failure', {}, 'failed', 'Carrier failed', 'At fault: the carrier.'],
    ['gateway-failure', {}, 'failed', 'Gateway failed', 'At fault: the gateway.'],
    ['bot-failure', {}, 'failed', 'Bot failed', 'At fault: the application'],
    ['cancelled', {}, 'cancelled', 'Cancelled', 'The call was cancelled after ringing for 11.4 s'],
    ['expired', {}, 'failed', 'Queued too long', 'was not placed.'],
    ['unknown', {}, 'failed', 'Outcome unknown', 'It is not known whether a phone rang.'],
    ['not-permitted', {}, 'held', 'Not permitted', 'Not placed: a rule forbids it.'],
    [
      ...(['not-permitted', { rule: 'hours', notBefore: endedAt }, 'held'] as const),
      ...['Not permitted: outside hours', 'outside the calling hours. It is permitted from '],
    ],
  ] as const)('%s %j', (outcome, more: object, who, words, explained) => {
    const fault = faultOf({ outcome, ...more });
    const result = callResult({ ...unanswered, outcome, fault, ...more });

    expect(result).toMatchObject({ who, words, detail: undefined, isLive: false });
    expect(result.explanation).toContain(explained);
  });

  test('is explained by the response of the carrier, its cause and who is at fault', () => {
    const cause = { q850: 17, text: 'User busy' };
    const busy = {
      outcome: 'busy',
      fault: 'callee',
      sipStatus: 486,
      reason: '486 Busy Here',
      cause,
    };

    expect(callResult({ ...unanswered, ...busy }).explanation).toBe(
      'The line was busy. The carrier’s response: 486 Busy Here, Q.850 cause 17 (User busy). At fault: the called phone.',
    );
    const timeout = { outcome: 'no-answer', fault: 'callee', reason: 'Ring time-out' };
    expect(callResult({ ...unanswered, ...timeout }).explanation).toBe(
      'Nobody answered after ringing for 11.4 s. Reason: Ring time-out. At fault: the called phone.',
    );
  });
});

test('the badge and the page of a call say the same sentences', async () => {
  const url = new URL('../../src/console/page/call-story.js', import.meta.url).href;
  const { storyOf } = (await import(url)) as {
    readonly storyOf: (call: object) => readonly { readonly text: string }[];
  };
  const timeline = [{ type: 'dialing', time: acceptedAt, data: {} }];
  for (const end of endsOfAllKinds()) {
    const call = { ...unanswered, ...end, ringingAt: undefined, timeline };
    expect(callResult(call).explanation).toContain(storyOf(call)[0]?.text);
  }
  const held = { ...queued, waitsFor: { rule: 'hours', until: endedAt }, timeline: [] };
  expect(callResult(held).explanation).toBe(storyOf(held)[0]?.text);
});

describe('whatever the API returns', () => {
  const ends = endsOfAllKinds().flatMap((end) =>
    [undefined, ...amdEventNames].map((verdict) => ({ ...end, fault: faultOf(end), verdict })),
  );

  test('has a colour, short words of its own and whole sentences', () => {
    const progress = callStates.flatMap((state) =>
      [undefined, ...amdEventNames].map((verdict) => ({ ...up, state, status: state, verdict })),
    );
    const held = ruleNames.flatMap((rule) => [
      { ...queued, waitsFor: { rule, until: endedAt } },
      { ...unanswered, outcome: 'not-permitted', rule },
    ]);
    const calls = [
      ...progress,
      ...held,
      ...ends.flatMap((end) => [
        { ...ended, ...end },
        { ...unanswered, ...end },
      ]),
    ];
    const faults = new Set(ends.map(({ fault }) => fault));
    expect(faults).toEqual(new Set([undefined, ...callFaults]));
    expect(new Set(ends.map(({ outcome }) => outcome))).toEqual(new Set(callOutcomes));
    for (const call of calls) {
      const { who, words, explanation } = callResult(call, nowMs);
      expect(whoKinds).toContain(who);
      expect(words).toMatch(/^[A-Z][A-Za-z:. ·0-9]{3,50}$/);
      expect(explanation).toMatch(/^[A-Z].*\.$/);
      expect(`${words} ${explanation}`).not.toMatch(/undefined|NaN|_|-[a-z]+-/);
    }
  });

  test('from a newer gateway is shown as it is', () => {
    expect(callResult({ ...unanswered, outcome: 'new-outcome' })).toMatchObject({
      ...{ who: 'unclear', words: 'new-outcome', explanation: 'Not answered: new-outcome.' },
    });
    expect(callResult({ ...ended, verdict: 'amd_new', reasonCode: 'New' }).words).toBe(
      'Answered · 8 s',
    );
    const waitsFor = { rule: 'new-rule', until: endedAt };
    expect(callResult({ ...queued, waitsFor }).name).toBe('Held: new-rule');
  });
});
