import { expect, test } from 'vitest';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { firstVerdictNote } from '../../src/cli/amd/amd-lines.ts';

const person: AmdEvent = {
  event: 'amd_human_detected',
  reason: 'short-greeting',
  elapsedMs: 1_500,
};

test('the report says what a machine was called at first, and for how long', () => {
  const beep: AmdEvent = {
    event: 'amd_tone_detected',
    reason: 'beep',
    elapsedMs: 4_000,
    corrects: 'amd_human_detected',
  };

  expect(firstVerdictNote([person, beep])).toBe(' (human at first, for 2.50 s)');
  expect(firstVerdictNote([person])).toBe('');
});
