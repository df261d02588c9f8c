// A call in Twilio's form: its status, who answered, and times in the format that Twilio's
// libraries parse.

import { describe, expect, test } from 'vitest';
import { callResource, callResourceSchema } from '../../../src/api/twilio/call-resource.ts';
import type { CallDetails, TimelineEntry } from '../../../src/interactions/call-queries.ts';

const names = { accountSid: `AC${'1'.repeat(32)}`, callSid: `CA${'2'.repeat(32)}` };

const queued: CallDetails = {
  ...{ callId: 'call-1', sid: 'sid-1', conversationId: 'c-1', botId: 'st-1' },
  ...{ state: 'queued', status: 'queued', machineDetection: 'detect' },
  ...{ target: 'tel:+12025550110', caller: '15559876543', metadata: {}, timeline: [] },
  acceptedAt: '2026-11-20T09:00:00.000Z',
};
const ended: CallDetails = {
  ...queued,
  ...{ state: 'ended', status: 'completed', outcome: 'completed' },
  answeredAt: '2026-11-20T09:00:04.120Z',
  endedAt: '2026-11-20T09:00:31.500Z',
};

function entry(type: string, time: string, data: unknown = {}): TimelineEntry {
  return { eventId: `evt-${time}`, eventSequence: 1, type, time, data };
}
const heard = (event: string, reason: string) =>
  entry('amd', '2026-11-20T09:00:06.000Z', { amd: { event, reason, elapsedMs: 1 } });

test('every resource matches its documented schema', () => {
  for (const call of [queued, ended]) {
    const resource = callResource(call, names);

    expect(callResourceSchema.parse(resource)).toEqual(resource);
  }
});

test('times are RFC 2822, and null until they are known', () => {
  expect(callResource(queued, names)).toMatchObject({
    ...{ date_created: 'Fri, 20 Nov 2026 09:00:00 +0000', start_time: null, end_time: null },
    ...{ duration: null, queue_time: '0' },
  });
  const timeline = [entry('dialing', '2026-11-20T09:00:02.500Z')];

  expect(callResource({ ...ended, timeline }, names)).toMatchObject({
    start_time: 'Fri, 20 Nov 2026 09:00:02 +0000',
    end_time: 'Fri, 20 Nov 2026 09:00:31 +0000',
    date_updated: 'Fri, 20 Nov 2026 09:00:31 +0000',
    ...{ duration: '27', queue_time: '2500' },
  });
});

describe('status', () => {
  test.each([
    ['queued', 'queued'],
    ['dialing', 'queued'],
    ['ringing', 'ringing'],
    ['answered', 'in-progress'],
  ] as const)('of a call in the state %s is %s', (state, status) => {
    expect(callResource({ ...queued, state }, names).status).toBe(status);
  });

  test.each([
    ['busy', 'busy'],
    ['declined', 'busy'],
    ['no-answer', 'no-answer'],
    ['unavailable', 'no-answer'],
    ['cancelled', 'canceled'],
    ['invalid-number', 'failed'],
    ['carrier-failure', 'failed'],
    ['expired', 'failed'],
    ['unknown', 'failed'],
  ] as const)('of a call that ended with the outcome %s is %s', (outcome, status) => {
    expect(callResource({ ...queued, state: 'ended', outcome }, names).status).toBe(status);
  });

  test('of a call that was answered and has ended is completed, whatever its outcome', () => {
    expect(callResource({ ...ended, outcome: 'gateway-failure' }, names).status).toBe('completed');
  });
});

describe('answered_by', () => {
  test.each([
    ['nothing decided yet', undefined, [], null],
    ['a person', 'amd_human_detected', [], 'human'],
    [
      'a machine that speaks',
      'amd_machine_detected',
      [heard('amd_machine_detected', 'x')],
      'machine_start',
    ],
    [
      'a machine after its beep',
      'amd_machine_detected',
      [heard('amd_machine_detected', 'x'), heard('amd_tone_detected', 'tone')],
      'machine_end_beep',
    ],
    [
      'a machine whose beep revoked the verdict of a person',
      'amd_tone_detected',
      [heard('amd_human_detected', 'x'), heard('amd_tone_detected', 'beep')],
      'machine_end_beep',
    ],
    [
      'a machine after its greeting',
      'amd_machine_detected',
      [heard('amd_machine_stopped_speaking', 'silence')],
      'machine_end_silence',
    ],
    ['a fax', 'amd_machine_detected', [heard('amd_machine_detected', 'fax-tone')], 'fax'],
    ['silence', 'amd_no_speech_detected', [], 'unknown'],
  ] as const)('of %s', (_what, verdict, timeline, answeredBy) => {
    const call = { ...queued, timeline, ...(verdict === undefined ? {} : { verdict }) };

    expect(callResource(call, names).answered_by).toBe(answeredBy);
  });
});
