// Tests the description of who picked up and for how long, and the line of a call.

import { describe, expect, test } from 'vitest';
import { callLine } from '../../src/cli/calls/call-line.ts';
import { talkTime, whoPickedUp } from '../../src/cli/picked-up.ts';
import type { CallSummary } from '../../src/interactions/call-queries.ts';

describe('who picked up', () => {
  test.each([
    [{ verdict: 'amd_human_detected', reason: 'short-greeting' }, 'person'],
    [{ verdict: 'amd_machine_detected', reason: 'long-greeting' }, 'machine'],
    [{ verdict: 'amd_machine_detected', reason: 'tone', beep: true }, 'machine, beep'],
    [{ verdict: 'amd_tone_detected', reason: 'beep', beep: true }, 'machine, beep'],
    [{ verdict: 'amd_machine_detected', reason: 'fax-tone' }, 'fax'],
    [{ verdict: 'amd_machine_detected', reason: 'sit-tone' }, 'network announcement'],
    [{ verdict: 'amd_machine_detected', reason: 'call-screening' }, 'call screener'],
    [{ verdict: 'amd_no_speech_detected', reason: 'no-speech' }, 'silence'],
    [{ verdict: 'amd_decision_timeout', reason: 'undecided' }, 'undecided'],
    [{ verdict: 'amd_error', reason: 'media-failed' }, 'detection failed'],
    [{}, undefined],
  ])('%j is %s', (detected, words) => {
    expect(whoPickedUp(detected)).toBe(words);
  });

  test.each([
    [0, '0.0 s'],
    [7_982, '8.0 s'],
    [59_960, '1 min 0 s'],
    [61_000, '1 min 1 s'],
    [3_725_000, '1 h 2 min'],
  ])('%i ms are %s', (ms, words) => {
    expect(talkTime(ms)).toBe(words);
  });
});

describe('a call in one line', () => {
  const call = {
    ...{ callId: 'call-1', sid: 's', conversationId: 'c', botId: 'bot-1', caller: '1' },
    ...{ target: 'tel:+12025550110', machineDetection: 'detect' },
    acceptedAt: '2026-11-20T08:00:00.000Z',
  } as const;
  const answeredAt = '2026-11-20T08:00:02.000Z';
  const now = new Date('2026-11-20T08:00:10.000Z');
  const start = '2026-11-20T08:00:00.000Z  call-1  bot-1  tel:+12025550110  ';

  test.each<[Partial<CallSummary> & Pick<CallSummary, 'state' | 'status'>, string]>([
    [{ state: 'queued', status: 'queued' }, 'queued'],
    [{ state: 'answered', status: 'answered', answeredAt }, 'answered  8.0 s so far'],
    [
      { state: 'answered', status: 'answered', answeredAt, verdict: 'amd_human_detected' },
      'answered  person, 8.0 s so far',
    ],
    [
      { state: 'ended', status: 'failed', outcome: 'busy', reason: '486 Busy Here' },
      'failed  busy (486 Busy Here)',
    ],
    [
      {
        ...{ state: 'ended', status: 'completed', outcome: 'completed', reason: '200 OK' },
        ...{ verdict: 'amd_machine_detected', verdictReason: 'long-greeting', beep: true },
        ...{ answeredAt, endedAt: '2026-11-20T08:00:14.400Z' },
      },
      'completed  machine, beep, 12.4 s  (200 OK)',
    ],
  ])('%j', (members, words) => {
    expect(callLine({ ...call, ...members }, now)).toBe(`${start}${words}`);
  });
});
