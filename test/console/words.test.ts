import { expect, test } from 'vitest';
import { callOutcomes, interactionStatuses } from '../../src/calls/contract/call-words.ts';
import { amdVerdicts } from '../../src/calls/detection/amd-event.ts';
import { ruleNames } from '../../src/calls/rules/rule-words.ts';
import { suppressionReasons } from '../../src/calls/rules/suppression.ts';

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

test('the page has words for every calling rule and offers every reason of a suppression', async () => {
  const load = async (name: string): Promise<unknown> =>
    await import(new URL(`../../src/console/page/${name}`, import.meta.url).href);
  const { ruleWords } = (await load('rule-words.js')) as { readonly ruleWords: object };
  const { suppressionReasons: offered } = (await load('words.js')) as {
    readonly suppressionReasons: readonly string[];
  };

  expect(Object.keys(ruleWords)).toEqual([...ruleNames]);
  expect(offered).toEqual([...suppressionReasons]);
});
