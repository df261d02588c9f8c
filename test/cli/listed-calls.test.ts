// Tests how `offhook calls` goes through a list. The test supplies the gateway's pages.

import { expect, test } from 'vitest';
import { describeUnfinished, printCalls } from '../../src/cli/calls/calls-command.ts';
import type { CallPage, CallSummary } from '../../src/interactions/call-queries.ts';

function pageOf(callIds: readonly string[], nextCursor?: string): CallPage {
  const calls = callIds.map(
    (callId): CallSummary => ({
      ...{ callId, sid: 's', conversationId: 'c', botId: 'bot-1', state: 'ended' },
      ...{ status: 'failed', target: 'tel:+12025550130', caller: '1' },
      ...{ machineDetection: 'detect', acceptedAt: '2026-11-20T08:00:00.000Z' },
    }),
  );
  return { calls, searched: {}, ...(nextCursor === undefined ? {} : { nextCursor }) };
}

async function printed(pages: readonly CallPage[], limit: number) {
  const lines: string[] = [];
  let read = 0;
  async function* reading() {
    for (const page of pages) {
      read += 1;
      yield await Promise.resolve(page);
    }
  }
  const context = { print: (line: string) => lines.push(line), interrupted: neverAborted };
  const { more } = await printCalls(context, reading(), ({ callId }) => callId, limit);
  return { lines, more, read };
}

const neverAborted = new AbortController().signal;
const pages = [pageOf(['a', 'b'], '1'), pageOf([], '2'), pageOf(['c'])];

test.each([
  ['inside a page', 1, ['a'], true, 1],
  ['at the end of a page, without a search for the next call', 2, ['a', 'b'], true, 1],
  ['at the end of the list', 3, ['a', 'b', 'c'], false, 3],
  ['nowhere', 9, ['a', 'b', 'c'], false, 3],
])('the limit ends the list %s', async (_where, limit, lines, more, read) => {
  expect(await printed(pages, limit)).toEqual({ lines, more, read });
});

test('a search that was given up says how to continue it, without losing calls of the same time', () => {
  const page = { searched: { from: '2026-11-24T08:00:00.000Z' } };

  expect(describeUnfinished(page, {})).toMatch(
    / To continue it, add --to 2026-11-24T08:00:00\.001Z\.$/,
  );
  expect(describeUnfinished(page, { day: '2026-11-24' })).toMatch(
    / replace --day by --from, for its beginning, and --to 2026-11-24T08:00:00\.001Z\.$/,
  );
});
