// Unknown members of requests and commands: misspellings are refused, foreign names are listed.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  callControlSchema,
  dialoutSchema,
  recordingMember,
  timersSchema,
} from '../../../src/api/dialout/dialout-schema.ts';
import { commandSchema } from '../../../src/calls/contract/command.ts';
import { screeningMember, voicemailMember } from '../../../src/calls/plans/plan-members.ts';
import { streamMember } from '../../../src/calls/stream/stream-members.ts';
import { bridgeMember } from '../../../src/calls/transfer/transfer-members.ts';
import { nearMisses } from '../../../src/lib/near-miss.ts';
import { forEachTest } from '../../support/opened.ts';
import { dial, minimal, type ProblemDocument, startHarness } from '../support.ts';

const shapes: Readonly<Record<string, object>> = {
  request: dialoutSchema.shape,
  timers: timersSchema.shape,
  stream: streamMember.shape,
  voicemail: voicemailMember.shape,
  screening: screeningMember.shape,
  bridge: bridgeMember.shape,
  recording: recordingMember.shape,
  callControlParameter: callControlSchema.shape,
  ...Object.fromEntries(
    commandSchema.options.map(({ shape }) => [`command ${shape.command.value}`, shape]),
  ),
};
const namesOf = (shape: object | undefined) => Object.keys(shape ?? {});

test.each(Object.entries(shapes))(
  'the members of %s are not misspellings of each other',
  (_, shape) => {
    const known = namesOf(shape);

    expect(known.filter((name) => nearMisses(name, known).length > 0)).toEqual([]);
  },
);

test('a member of five letters or more is recognised with one character wrong', () => {
  const places = Object.values(shapes).flatMap((shape) =>
    namesOf(shape)
      .filter((name) => name.length >= 5)
      .map((name) => ({ name, known: namesOf(shape) })),
  );
  const slips = fc.record({
    place: fc.constantFrom(...places),
    kind: fc.constantFrom('insert', 'delete', 'substitute', 'swap'),
    at: fc.nat({ max: 40 }),
    character: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }).filter(isOne),
  });
  fc.assert(
    fc.property(slips, ({ place: { name, known }, kind, at, character }) => {
      const edited = editedName(name, kind, at % name.length, character);
      fc.pre(!known.includes(edited));
      expect(nearMisses(edited, known)).toContain(name);
    }),
    { numRuns: 3_000 },
  );
});

/** One character, not several that form one letter. */
function isOne(text: string): boolean {
  return Array.from(text).length === 1;
}

function editedName(name: string, kind: string, at: number, character: string): string {
  const letters = Array.from(name);
  if (kind === 'insert') letters.splice(at, 0, character);
  else if (kind === 'delete') letters.splice(at, 1);
  else if (kind === 'substitute') letters[at] = character;
  else letters.splice(at, 2, ...letters.slice(at, at + 2).reverse());
  return letters.join('');
}

describe('a misspelling', () => {
  test.each([
    ['request', 'notifyurll', 'notifyurl'],
    ['request', 'notify_url', 'notifyurl'],
    ['request', 'machineDetect', 'machineDetection'],
    ['request', 'machineDetector', 'machineDetection'],
    ['request', 'timeoutMs', 'timeoutInMs'],
    ['request', 'timeout', 'timeoutInMs'],
    ['request', 'timeoutSeconds', 'timeoutInMs'],
    ['request', 'queueTimeout', 'queueTimeoutMs'],
    ['request', 'maxDuration', 'maxDurationMs'],
    ['request', 'targett', 'target'],
    ['request', 'traget', 'target'],
    ['timers', 'noSpeechTimeout', 'noSpeechTimeoutMs'],
    ['timers', 'toneTimeoutMS', 'toneTimeoutMs'],
    ['bridge', 'timeoutInMs', 'timeoutMs'],
    ['voicemail', 'max', 'maxMs'],
    ['callControlParameter', 'sttLangauge', 'sttLanguage'],
    ['command play', 'lopp', 'loop'],
    ['command play', 'looop', 'loop'],
    ['command transfer', 'timeoutInMs', 'timeoutMs'],
    ['command dtmf', 'duration', 'durationMs'],
  ])('in %s: %s means %s', (shape, name, meant) => {
    expect(nearMisses(name, namesOf(shapes[shape]))).toEqual([meant]);
  });
});

describe('a foreign name', () => {
  test.each([
    ['request', 'language'],
    ['request', 'callerId'],
    ['request', 'campaignId'],
    ['request', 'priority'],
    ['request', 'record'],
    ['request', 'voice'],
    ['request', 'from'],
    ['request', 'to'],
    ['request', 'statusCallback'],
    ['request', 'machineDetectionTimeout'],
    ['request', 'asyncAmd'],
    ['request', 'machine_detection_url'],
    ['request', 'notify'],
    ['request', 'x'.repeat(100_000)],
    ['callControlParameter', 'language'],
    ['callControlParameter', 'ttsLanguage'],
    ['callControlParameter', 'ttsProvider'],
    ['callControlParameter', 'ttsLabel'],
    ['callControlParameter', 'voiceName'],
    ['stream', 'track'],
    ['bridge', 'model'],
    ['bridge', 'code'],
    ['bridge', 'of'],
    ['command play', 'digits'],
    ['command transfer', 'reason'],
  ])('in %s: %s is not taken for a misspelling', (shape, name) => {
    expect(nearMisses(name, namesOf(shapes[shape]))).toEqual([]);
  });
});

test('a misspelling that is equally close to two names names both', () => {
  expect(nearMisses('notifyOne', ['notifyOnce', 'notifyOnes'])).toEqual([
    'notifyOnce',
    'notifyOnes',
  ]);
});

describe('a dial-out request', () => {
  const harness = forEachTest(startHarness);

  test.each([
    [{ notifyurll: 'http://127.0.0.1:9/' }, 'notifyurll', 'notifyurl'],
    [{ Bot: 'st-1' }, 'Bot', 'botId'],
    [{ timers: { noSpeechTimeout: 500 } }, 'timers.noSpeechTimeout', 'noSpeechTimeoutMs'],
    [{ stream: { paramters: {} } }, 'stream.paramters', 'parameters'],
    [{ bridge: { to: 'sip:a@b', timeoutInMs: 1 } }, 'bridge.timeoutInMs', 'timeoutMs'],
    [{ voicemail: { play: 'sound:a', ifNoBeeps: 1 } }, 'voicemail.ifNoBeeps', 'ifNoBeep'],
    [{ screening: { play: 'sound:a', palys: 1, plya: 1 } }, 'screening.plya', 'play'],
    [
      { callControlParameter: { sttProvider: 'a', sttLanguage: 'b', interm: 1 } },
      'callControlParameter.interm',
      'interim',
    ],
  ])('%j is refused with the right name', async (extra, path, meant) => {
    const response = await dial(harness, { ...minimal, machineDetection: 'detect', ...extra });

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors).toContainEqual({
      path,
      message: `is unknown; did you mean ${meant}?`,
    });
    expect(harness.submissions).toEqual([]);
  });

  test('is accepted with foreign members, which the answer lists', async () => {
    const response = await dial(harness, {
      ...minimal,
      ...{
        language: 'en',
        callee: 'Ann',
        'x-y': [1],
        metadata: { targett: 1 },
        notifyHeaders: { timeout: '1' },
      },
      timers: { language: 1 },
      callControlParameter: { sttProvider: 'a', sttLanguage: 'b', ttsLanguage: 'c' },
      bridge: { to: 'sip:a@b', on: 'answered', headers: { mod: 'x' }, note: 1 },
    });

    expect(response.statusCode).toBe(200);
    expect(harness.submissions[0]?.remarks).toEqual({
      ignored: [
        'language',
        'callee',
        'x-y',
        'timers.language',
        'bridge.note',
        'callControlParameter.ttsLanguage',
      ],
    });
  });

  test('lists the first fifty, and nothing that a database refuses', async () => {
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`x${index}`, 1]));
    const odd = { [`\u0000\ud800${'y'.repeat(500)}`]: 1 };
    await dial(harness, { ...minimal, ...odd, ...many });
    const { ignored = [] } = harness.submissions[0]?.remarks ?? {};

    expect(ignored).toHaveLength(50);
    expect(ignored[0]).toBe(`\ufffd\ufffd${'y'.repeat(126)}`);
  });

  test('without foreign members has no remarks', async () => {
    await dial(harness, minimal);

    expect(harness.submissions[0]).not.toHaveProperty('remarks');
  });
});
