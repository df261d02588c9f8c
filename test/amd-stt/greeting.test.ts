import { expect, test } from 'vitest';
import { contextOf } from '../../src/calls/contract/event-table.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { exampleAnswer } from '../../src/calls/life/call-contract.ts';

function greetingOf(...events: readonly AmdEvent[]): string | undefined {
  const facts = events.map((amd) => ({ type: 'amd' as const, data: { ...exampleAnswer, amd } }));
  return contextOf({}, facts).session.UserSession.amdInfo.amdGreeting;
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
