// How recordings are scored: what counts as right, as early, as reported in time, and as a false
// beep.

import { describe, expect, test } from 'vitest';
import type { AmdEventName } from '../../src/calls/detection/amd-event.ts';
import { verdictFrom } from '../../src/cli/amd/amd-listen.ts';
import { intervalOf, summaryLines } from './score/figures.ts';
import type { Label, Truth } from './score/manifest.ts';
import { faultsOf, type Judged, summarise } from './score/score.ts';

function judged(
  label: Label,
  events: readonly (readonly [AmdEventName, number])[],
  truth: Partial<Truth> = {},
): Judged {
  const stated = events.map(([event, elapsedMs], index) => ({
    event,
    elapsedMs,
    reason: 'x',
    ...(event === 'amd_tone_detected' && events[index - 1]?.[0] === 'amd_human_detected'
      ? { corrects: 'amd_human_detected' as const }
      : {}),
  }));
  return {
    file: `${label}.wav`,
    durationMs: 10_000,
    events: stated,
    verdict: verdictFrom(stated),
    truth: { label, expect: new Set(), segments: [], ...truth },
  };
}

const beep = { startMs: 5_000, endMs: 5_500 };

describe('the verdict', () => {
  test.each<[AmdEventName[], string]>([
    [['amd_human_detected', 'amd_stopped'], 'human'],
    [['amd_human_detected', 'amd_tone_detected', 'amd_stopped'], 'machine'],
    [['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_stopped'], 'machine'],
    [['amd_no_speech_detected', 'amd_stopped'], 'no-speech'],
    [['amd_decision_timeout', 'amd_stopped'], 'timeout'],
    [['amd_error', 'amd_stopped'], 'error'],
    [['amd_stopped'], 'timeout'],
  ])('of the events %j is %s', (events, verdict) => {
    expect(
      judged(
        'human',
        events.map((event) => [event, 1_000]),
      ).verdict,
    ).toBe(verdict);
  });
});

describe('right and wrong', () => {
  test.each<[string, Judged, readonly string[]]>([
    ['a person', judged('human', [['amd_human_detected', 2_000]]), []],
    [
      'a person who waits longer than the time-out',
      judged('human', [['amd_no_speech_detected', 5_000]], { expect: new Set(['no_speech']) }),
      [],
    ],
    [
      'a person who is not heard',
      judged('human', [['amd_no_speech_detected', 5_000]]),
      ['human heard as no-speech'],
    ],
    [
      'a machine corrected by its beep',
      judged(
        'machine',
        [
          ['amd_human_detected', 2_000],
          ['amd_tone_detected', 5_600],
        ],
        { beep },
      ),
      [],
    ],
    [
      'a beep reported late',
      judged(
        'machine',
        [
          ['amd_machine_detected', 2_000],
          ['amd_tone_detected', 5_800],
        ],
        { beep },
      ),
      ['beep reported 300 ms after its end'],
    ],
    [
      'a beep reported while it sounds',
      judged(
        'machine',
        [
          ['amd_machine_detected', 2_000],
          ['amd_tone_detected', 5_200],
        ],
        { beep },
      ),
      ['beep reported 300 ms before its end'],
    ],
    [
      'a beep reported before it sounds',
      judged(
        'machine',
        [
          ['amd_machine_detected', 2_000],
          ['amd_tone_detected', 4_000],
        ],
        { beep },
      ),
      ['false beep', 'beep missed'],
    ],
    [
      'music taken for a beep',
      judged('other', [
        ['amd_machine_detected', 900],
        ['amd_tone_detected', 900],
      ]),
      ['false beep'],
    ],
    [
      'music in an ambiguous recording',
      judged(
        'other',
        [
          ['amd_machine_detected', 900],
          ['amd_tone_detected', 900],
        ],
        {
          expect: new Set(['ambiguous']),
        },
      ),
      [],
    ],
    ['noise', judged('silence', [['amd_human_detected', 900]]), ['silence heard as human']],
  ])('%s', (_name, item, faults) => {
    expect(faultsOf(item)).toEqual(faults);
  });
});

test('verdicts before the end of a greeting do not lower the delay of the others', () => {
  const delays = [400, 800, 1_200, -500].map((delay) =>
    judged('human', [['amd_human_detected', 3_000 + delay]], { greetingEndMs: 3_000 }),
  );

  expect(summarise(delays).humanVerdictDelayMs).toEqual({
    count: 3,
    median: 800,
    p95: 1_200,
    early: 1,
  });
});

test('each class has figures of its own if the manifest names classes', () => {
  const items = [
    judged('human', [['amd_human_detected', 900]], { class: 'hello' }),
    judged('human', [['amd_machine_detected', 900]], { class: 'hello' }),
    judged('machine', [['amd_machine_detected', 900]], { class: 'greeting', beep }),
    judged('human', [['amd_human_detected', 900]]),
  ];

  expect(summarise(items).classes).toEqual([
    {
      label: 'human',
      name: 'hello',
      right: { count: 1, of: 2 },
      rightAtFirst: { count: 1, of: 2 },
      beepsFound: { count: 0, of: 0 },
      falseBeeps: { count: 0, of: 2 },
    },
    {
      label: 'machine',
      name: 'greeting',
      right: { count: 1, of: 1 },
      rightAtFirst: { count: 1, of: 1 },
      beepsFound: { count: 0, of: 1 },
      falseBeeps: { count: 0, of: 1 },
    },
  ]);
});

test.each([
  // Wilson 1927, as tabulated by Brown, Cai and DasGupta (2001).
  [0, 10, 0, 0.2775],
  [5, 10, 0.2366, 0.7634],
  [10, 10, 0.7225, 1],
  [95, 100, 0.8882, 0.9785],
])('%i of %i lies, 95 times of 100, between %f and %f', (count, of, low, high) => {
  const interval = intervalOf({ count, of });

  expect(interval.low).toBeCloseTo(low, 3);
  expect(interval.high).toBeCloseTo(high, 3);
});

test('counts the machines that were first called people, and how long', () => {
  const corrected = {
    ...judged('machine', []),
    events: [
      { event: 'amd_human_detected', elapsedMs: 1_500, reason: 'x' },
      { event: 'amd_tone_detected', elapsedMs: 4_000, reason: 'x', corrects: 'amd_human_detected' },
    ],
  } as const;
  const missed = judged('machine', [['amd_human_detected', 900]]);
  const { machinesFirstCalledHuman, correctionMs, machinesKnown } = summarise([
    { ...corrected, verdict: 'machine' },
    { ...missed, verdict: 'human' },
    judged('machine', [['amd_machine_detected', 3_000]]),
  ]);

  expect(machinesFirstCalledHuman).toEqual({ count: 2, of: 3 });
  expect(correctionMs).toEqual({ count: 1, median: 2_500, p95: 2_500 });
  expect(machinesKnown).toEqual({ count: 2, of: 3 });
});

test('words are compared after the last word', () => {
  const [first, last] = [
    { event: 'amd_machine_detected', elapsedMs: 2_000, reason: 'x', words: 9 },
    { event: 'amd_machine_stopped_speaking', elapsedMs: 6_000, reason: 'x', words: 14 },
  ] as const;
  const truth = { words: 17, greetingEndMs: 4_000 };
  const item = { ...judged('machine', [], truth), events: [first, last] };

  expect(summarise([item]).wordsOff).toEqual({ count: 1, median: 3, p95: 3 });
});

test('the report says "none" without recordings of a kind, never NaN', () => {
  const lines = summaryLines(summarise([judged('silence', [['amd_no_speech_detected', 5_000]])]));

  expect(lines.join('\n')).not.toMatch(/NaN|undefined|Infinity/);
  expect(lines).toContain(
    'silence             0          0          1          0  100.0 %      (1/1)',
  );
  expect(lines.at(-1)).toBe('Nothing wrong.');
});
