import { expect, test } from 'vitest';
import { callOutcomes, interactionStatuses } from '../../src/calls/contract/call-words.ts';

test('the filters offer every status and outcome of calls', async () => {
  const page = new URL('../../src/console/page/words.js', import.meta.url).href;
  const { filters } = (await import(page)) as { readonly filters: unknown };

  expect(filters).toEqual({
    status: [...interactionStatuses],
    outcome: [...callOutcomes],
  });
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
