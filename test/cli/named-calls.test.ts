// Tests finding calls by the beginning of their id. The test supplies the gateway's answers.

import { describe, expect, test } from 'vitest';
import { findCallId } from '../../src/cli/calls/named-call.ts';
import type { OverviewClient } from '../../src/cli/gateway-client.ts';
import { ambiguousIdMessage, idPrefixOf } from '../../src/cli/id-prefix.ts';
import type { CallSummary } from '../../src/interactions/call-queries.ts';

function overviewOf(count: number) {
  const asked: unknown[] = [];
  const calls = Array.from({ length: count }, (_, index): CallSummary => {
    const callId = `call-0d9c4c52-${String(index).padStart(4, '0')}-4000-8000-000000000000`;
    return {
      ...{ callId, sid: 's', conversationId: 'c', botId: 'bot-1', state: 'ended' },
      ...{ status: 'failed', target: 'tel:+12025550130', caller: '1' },
      ...{ machineDetection: 'detect', outcome: 'busy', reason: '486 Busy Here' },
      acceptedAt: '2026-11-20T08:00:00.000Z',
    };
  });
  const unasked = async () => await Promise.reject(new Error('not to be asked'));
  const overview: OverviewClient = {
    calls: async (page) => {
      asked.push(page);
      return { calls, searched: {} };
    },
    call: unasked,
    summary: unasked,
    callers: unasked,
    deadLetters: unasked,
  };
  return { overview, asked };
}

test('a call is found with one request', async () => {
  const { overview, asked } = overviewOf(1);

  expect(await findCallId(overview, '0d9c')).toBe('call-0d9c4c52-0000-4000-8000-000000000000');
  expect(asked).toEqual([{ callIdPrefix: 'call-0d9c', limit: '11' }]);
});

test('a whole id, and text that cannot begin an id, are left to the gateway', async () => {
  const { overview, asked } = overviewOf(1);
  const whole = 'call-0d9c4c52-0000-4000-8000-000000000000';

  expect(await findCallId(overview, whole)).toBe(whole);
  expect(await findCallId(overview, 'nonsense')).toBe('nonsense');
  expect(asked).toEqual([]);
});

test.each([
  [2, 2, false],
  [10, 10, false],
  [11, 10, true],
])('of %i matching calls, %i are listed; "and more" is printed: %s', async (count, shown, more) => {
  const { overview } = overviewOf(count);

  const error: unknown = await findCallId(overview, 'call-0d9c').catch((cause: unknown) => cause);

  const lines = (error as Error).message.split('\n');
  expect(lines[0]).toBe('Several ids begin with call-0d9c. Type more of the id that you mean:');
  expect(lines.filter((line) => line.endsWith('failed  busy (486 Busy Here)'))).toHaveLength(shown);
  expect(lines.includes('  and more')).toBe(more);
});

describe('the beginning of an id', () => {
  const uuid = '0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';

  test.each([
    ['call-0d9c', 'call-0d9c'],
    ['0d9c4c52-9', 'call-0d9c4c52-9'],
    [uuid, `call-${uuid}`],
    [`call-${uuid.slice(0, -1)}`, `call-${uuid.slice(0, -1)}`],
    ['call-0d9', 'too-short'],
    ['0', 'too-short'],
    [`call-${uuid}`, undefined],
    [`call-${uuid}0`, undefined],
    ['call-', undefined],
    ['', undefined],
    ['nonsense', undefined],
    ['0d9c-4c52', undefined],
    ['0d9ccall-4c52', undefined],
  ])('%j is %s', (text, prefix) => {
    expect(idPrefixOf('call', text)).toBe(prefix);
  });

  test('with several matches lists a bounded number of them', () => {
    const lines = Array.from({ length: 11 }, (_, index) => `line ${index}`);

    expect(ambiguousIdMessage('call-0d9c', lines.slice(0, 2))).toBe(
      'Several ids begin with call-0d9c. Type more of the id that you mean:\n  line 0\n  line 1',
    );
    expect(ambiguousIdMessage('call-0d9c', lines)).toMatch(/\n {2}line 9\n {2}and more$/);
  });
});
