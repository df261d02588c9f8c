import { expect, test } from 'vitest';
import { csvHeader, csvLine, csvOfCall } from '../../src/interactions/call-csv.ts';
import type { CallSummary } from '../../src/interactions/call-queries.ts';

const call: CallSummary = {
  callId: 'call-1',
  sid: 'sid-1',
  conversationId: 'c-1',
  botId: 'bot-1',
  state: 'ended',
  status: 'failed',
  target: 'tel:+12025550110',
  caller: '+15559876543',
  trunk: 'carrier',
  machineDetection: 'detect',
  outcome: 'rejected',
  fault: 'carrier',
  sipStatus: 403,
  reason: '403 No, "thanks"',
  reasonCode: 'Service Unavailable',
  acceptedAt: '2026-11-24T08:00:00.000Z',
  endedAt: '2026-11-24T08:00:01.000Z',
};

test('a call is a line under the header, with its members in the same order', () => {
  const names = csvHeader.trimEnd().split(',');
  const cells = csvOfCall({ ...call, reason: 'Forbidden' })
    .trimEnd()
    .split(',');

  expect(csvHeader.endsWith('\r\n')).toBe(true);
  expect(cells).toHaveLength(names.length);
  const read = Object.fromEntries(names.map((name, index) => [name, cells[index]]));
  expect(read).toMatchObject({
    ...{ callId: 'call-1', target: 'tel:+12025550110', caller: '+15559876543', sipStatus: '403' },
    ...{ reason: 'Forbidden', verdict: '', answeredAt: '', endedAt: '2026-11-24T08:00:01.000Z' },
  });
});

test.each([
  ['403 No, "thanks"', '"403 No, ""thanks"""'],
  ['two\r\nlines', '"two\r\nlines"'],
  ['a;b', '"a;b"'],
  ['=HYPERLINK("http://evil.example")', `"'=HYPERLINK(""http://evil.example"")"`],
  ['+1-800-FLOWERS', "'+1-800-FLOWERS"],
  ['-2+3', "'-2+3"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['+15559876543', '+15559876543'],
  ['-1.5', '-1.5'],
  ['plain', 'plain'],
])('%j is written as %j', (value, cell) => {
  expect(csvLine([value])).toBe(`${cell}\r\n`);
});
