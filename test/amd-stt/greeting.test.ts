import { expect, test } from 'vitest';
import { type AcceptedCall, defaultAmdTimers } from '../../src/calls/call-types.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { callContext, progressOfAccepted } from '../../src/calls/life/call-events.ts';
import { someIdentity } from '../support/call-events.ts';

const call: AcceptedCall = {
  ...someIdentity(),
  acceptedAt: new Date(),
  request: {
    target: { kind: 'tel', number: '15551230001' },
    caller: '15559876543',
    ringTimeoutMs: 60_000,
    queueTimeoutMs: 300_000,
    metadata: {},
    machineDetection: 'detect',
    amd: { timers: defaultAmdTimers },
  },
};

function greetingOf(...events: readonly AmdEvent[]): string | undefined {
  const progress = { ...progressOfAccepted(call), amdEvents: events };
  return callContext(progress).session.UserSession.amdInfo.amdGreeting;
}

test('the greeting is what the machine said up to the verdict, and later the whole greeting', () => {
  const machine: AmdEvent = {
    event: 'amd_machine_detected',
    reason: 'word-count',
    elapsedMs: 2_000,
    transcript: 'You have reached',
  };
  const stopped: AmdEvent = {
    event: 'amd_machine_stopped_speaking',
    reason: 'silence',
    elapsedMs: 6_000,
    transcript: 'You have reached Ann.',
  };

  expect(greetingOf(machine)).toBe('You have reached');
  expect(greetingOf(machine, stopped)).toBe('You have reached Ann.');
});

test('a call with the verdict human has no greeting', () => {
  const human: AmdEvent = {
    event: 'amd_human_detected',
    reason: 'short-greeting',
    elapsedMs: 900,
    transcript: 'Hello?',
  };

  expect(greetingOf(human)).toBeUndefined();
});
