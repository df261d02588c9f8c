import { expect, test } from 'vitest';
import { callOutcomes, interactionStatuses } from '../../src/calls/contract/call-words.ts';
import { amdVerdicts } from '../../src/calls/detection/amd-event.ts';

test('the filters offer every status, outcome and verdict of calls', async () => {
  const page = new URL('../../src/console/page/words.js', import.meta.url).href;
  const { filters } = (await import(page)) as {
    readonly filters: { readonly verdict: readonly string[] };
  };

  expect(filters).toEqual({
    status: [...interactionStatuses],
    outcome: [...callOutcomes],
    verdict: filters.verdict,
  });
  const ofCalls = [...amdVerdicts, 'amd_tone_detected'];
  expect(new Set(filters.verdict)).toEqual(new Set(ofCalls));
});

test('a notification is named by its event, verdict or status', async () => {
  const page = new URL('../../src/console/page/format.js', import.meta.url).href;
  const { notificationName } = (await import(page)) as {
    readonly notificationName: (body: object) => string;
  };

  expect(notificationName({ status: 'Answered' })).toBe('Answered');
  const machineDetection = 'amd_stopped';
  expect(notificationName({ status: 'Call-In-Progress', machineDetection })).toBe('amd_stopped');
  expect(notificationName({ status: 'Event', event: { type: 'dtmf' } })).toBe('dtmf');
});
