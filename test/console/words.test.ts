import { expect, test } from 'vitest';
import { callOutcomes, interactionStatuses } from '../../src/calls/contract/call-words.ts';
import { amdVerdicts } from '../../src/calls/detection/amd-event.ts';
import { ruleNames } from '../../src/calls/rules/rule-words.ts';
import { suppressionReasons } from '../../src/calls/rules/suppression.ts';
import { ruleSetSchema } from '../../src/rules/rule-set.ts';

test('the filters offer every status, outcome and verdict of calls', async () => {
  const page = new URL('../../src/console/page/words.js', import.meta.url).href;
  const { filters, results } = (await import(page)) as {
    readonly filters: { readonly verdict: readonly string[] };
    readonly results: Readonly<Record<string, Readonly<Record<string, string>>>>;
  };

  expect(filters).toEqual({
    status: [...interactionStatuses],
    outcome: [...callOutcomes],
    verdict: filters.verdict,
  });
  const offered = Object.values(results).flatMap((group) => Object.keys(group));
  expect(offered.toSorted()).toEqual(
    [...new Set([...interactionStatuses, ...callOutcomes])].toSorted(),
  );
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

test('the page has words for every calling rule and member of a rule set, and offers every reason of a suppression', async () => {
  const load = async (name: string): Promise<unknown> =>
    await import(new URL(`../../src/console/page/${name}`, import.meta.url).href);
  const { ruleWords, briefRuleWords, memberWords } = (await load('rule-words.js')) as {
    readonly ruleWords: object;
    readonly briefRuleWords: object;
    readonly memberWords: object;
  };
  const { suppressionReasonWords } = (await load('words.js')) as {
    readonly suppressionReasonWords: object;
  };

  expect(Object.keys(ruleWords)).toEqual([...ruleNames]);
  expect(Object.keys(briefRuleWords)).toEqual([...ruleNames]);
  expect(Object.keys(memberWords)).toEqual(Object.keys(ruleSetSchema.shape));
  expect(Object.keys(suppressionReasonWords)).toEqual([...suppressionReasons]);
});
