// The sums of the first page: hours of the browser's clock, and comparisons.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

type Counts = { readonly accepted: number; readonly outcomes: Readonly<Record<string, number>> };
type Quarter = Counts & { readonly from: string };

const page = (await import(new URL('../../src/console/page/hours.js', import.meta.url).href)) as {
  readonly hoursOf: (quarters: readonly Quarter[]) => readonly Counts[];
  readonly untilNow: (quarters: readonly Quarter[], nowMs: number) => readonly Quarter[];
  readonly dayOf: (nowMs: number, weeks?: number) => { readonly from: string; readonly to: string };
  readonly change: (value?: number, before?: number, isShare?: boolean) => string | undefined;
  readonly attemptsOf: (counts: object) => number;
};

const zone = process.env['TZ'];
beforeEach(() => {
  process.env['TZ'] = zone;
});
afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const quarter = (from: string, accepted = 1): Quarter => ({
  ...{ from, accepted, answered: 0, people: 0, machines: 0 },
  outcomes: { busy: accepted },
});
const accepted = (counts: readonly Counts[]) =>
  counts.flatMap((one, hour) => (one.accepted === 0 ? [] : [[hour, one.accepted]]));

describe('the hours of a day', () => {
  test.each([
    [
      'UTC',
      [
        [8, 3],
        [9, 4],
      ],
    ],
    // Half an hour, and three quarters of an hour, from the hours of UTC.
    [
      'Asia/Kolkata',
      [
        [13, 1],
        [14, 6],
      ],
    ],
    [
      'Asia/Kathmandu',
      [
        [13, 1],
        [14, 2],
        [15, 4],
      ],
    ],
  ])('are those of the clock in %s', (timeZone, expected) => {
    process.env['TZ'] = timeZone;
    const quarters = [
      quarter('2026-11-24T08:00:00Z'),
      quarter('2026-11-24T08:45:00Z', 2),
      quarter('2026-11-24T09:15:00Z', 4),
    ];

    expect(accepted(page.hoursOf(quarters))).toEqual(expected);
    expect(page.hoursOf(quarters)[0]?.outcomes).toEqual({});
  });

  test('have the calls of both hours if the clock is set back', () => {
    process.env['TZ'] = 'Europe/Berlin';
    const { from, to } = page.dayOf(Date.parse('2026-10-25T12:00:00Z'));
    expect([from, to]).toEqual(['2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z']);
    const quarters = [quarter('2026-10-25T00:00:00Z'), quarter('2026-10-25T01:00:00Z', 2)];
    expect(accepted(page.hoursOf(quarters))).toEqual([[2, 3]]);
  });

  test('are compared with the same weekday, up to the same time of the clock', () => {
    process.env['TZ'] = 'Europe/Berlin';
    // Daylight saving time ended in between.
    const nowMs = Date.parse('2026-10-27T11:20:00Z');
    const day = page.dayOf(nowMs, 1);
    expect(day).toEqual({ from: '2026-10-19T22:00:00.000Z', to: '2026-10-20T22:00:00.000Z' });
    const quarters = [quarter('2026-10-20T10:15:00Z'), quarter('2026-10-20T10:30:00Z')];
    expect(page.untilNow(quarters, nowMs)).toEqual(quarters.slice(0, 1));
  });
});

test('a change is a percentage, or that of a share in points', () => {
  expect(page.change(112, 100)).toBe('+12 %');
  expect(page.change(0, 10)).toBe('−100 %');
  expect(page.change(0.083, 0.08, true)).toBe('+0.3 points');
  expect(page.change(0.5, 0.5, true)).toBe('no change');
  expect(page.change(5, 0)).toBeUndefined();
  expect(page.change(undefined, 0.1, true)).toBeUndefined();
});

test('the answer rate leaves out calls that never reached a carrier', () => {
  const outcomes = { completed: 3, busy: 5, expired: 7, 'not-permitted': 9 };
  expect(page.attemptsOf({ answered: 3, outcomes })).toBe(8);
  expect(page.attemptsOf({ answered: 2, outcomes: {} })).toBe(2);
});
