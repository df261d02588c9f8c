import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createCallingHours, type WeeklyHours } from '../../src/rules/hours/calling-hours.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

type Window = readonly [day: number, from: string, until: string];

/** The hours of windows such as `[1, '08:00', '21:00']`, of a Monday. */
function hoursOf(windows: readonly Window[], closed: readonly string[] = []): WeeklyHours {
  const days = Array.from({ length: 7 }, (_, day) =>
    windows
      .filter(([of]) => of === day)
      .map(([, from, until]) => ({ fromMinute: minutesOf(from), untilMinute: minutesOf(until) })),
  );
  return { windows: days, closed };
}

const everyDay = (from: string, until: string): readonly Window[] =>
  [0, 1, 2, 3, 4, 5, 6].map((day) => [day, from, until]);

function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

function opening(
  hours: WeeklyHours,
  zones: string | readonly string[],
  from: string,
): string | undefined {
  const openingMs = createCallingHours(hours).opening([zones].flat(), Date.parse(from));
  return openingMs === undefined ? undefined : new Date(openingMs).toISOString();
}

describe('the hours of one zone', () => {
  const weekdays = hoursOf([1, 2, 3, 4, 5].map((day) => [day, '08:00', '21:00']));

  test.each([
    ['within a window: now', '2026-11-24T15:00:00.123Z', '2026-11-24T15:00:00.123Z'],
    ['before the window of the day', '2026-11-24T12:59:59.999Z', '2026-11-24T13:00:00.000Z'],
    ['the first moment', '2026-11-24T13:00:00.000Z', '2026-11-24T13:00:00.000Z'],
    ['the last moment', '2026-11-25T01:59:59.999Z', '2026-11-25T01:59:59.999Z'],
    ['the end is outside', '2026-11-25T02:00:00.000Z', '2026-11-25T13:00:00.000Z'],
    ['after Friday', '2026-11-28T02:00:00.000Z', '2026-11-30T13:00:00.000Z'],
  ])('%s', (_, from, expected) => {
    expect(opening(weekdays, 'America/New_York', from)).toBe(expected);
  });

  test('24:00 is the end of the day, and the next day may go on', () => {
    const untilMidnight = hoursOf([
      [1, '20:00', '24:00'],
      [2, '00:00', '01:00'],
    ]);

    for (const from of ['2026-11-23T23:59:59.999Z', '2026-11-24T00:59:00.000Z']) {
      expect(opening(untilMidnight, 'UTC', from)).toBe(from);
    }
    expect(opening(untilMidnight, 'UTC', '2026-11-24T01:00:00Z')).toBe('2026-11-30T20:00:00.000Z');
  });

  test('a closed day is a date of the zone, not of UTC', () => {
    const hours = hoursOf(everyDay('08:00', '21:00'), ['2026-12-25']);

    // In Auckland, the 25th begins at 11:00 UTC on the 24th.
    expect(opening(hours, 'Pacific/Auckland', '2026-12-24T20:00:00Z')).toBe(
      '2026-12-25T19:00:00.000Z',
    );
    expect(opening(hours, 'Pacific/Honolulu', '2026-12-25T18:00:00Z')).toBe(
      '2026-12-26T18:00:00.000Z',
    );
  });

  test('a window in the skipped hour does not open on that day', () => {
    const hours = hoursOf(everyDay('02:15', '02:45'));

    // In 2026, New York skips 02:00 to 03:00 on 8 March.
    expect(opening(hours, 'America/New_York', '2026-03-08T06:00:00Z')).toBe(
      '2026-03-09T06:15:00.000Z',
    );
  });

  test('a window that begins in the skipped hour opens when the clock has gone forward', () => {
    expect(
      opening(hoursOf(everyDay('02:30', '10:00')), 'America/New_York', '2026-03-08T06:00:00Z'),
    ).toBe('2026-03-08T07:00:00.000Z');
  });

  test('a window in the repeated hour opens twice', () => {
    const hours = hoursOf(everyDay('01:15', '01:30'));

    expect(opening(hours, 'America/New_York', '2026-11-01T05:00:00Z')).toBe(
      '2026-11-01T05:15:00.000Z',
    );
    expect(opening(hours, 'America/New_York', '2026-11-01T05:30:00Z')).toBe(
      '2026-11-01T06:15:00.000Z',
    );
  });

  test('29 February is found from the year before', () => {
    const sundays = hoursOf([[0, '10:00', '11:00']]);
    expect(opening(sundays, 'UTC', '2028-02-28T12:00:00Z')).toBe('2028-03-05T10:00:00.000Z');
    expect(opening(hoursOf(everyDay('10:00', '11:00')), 'UTC', '2028-02-28T12:00:00Z')).toBe(
      '2028-02-29T10:00:00.000Z',
    );
  });

  test('hours that never come have no opening', () => {
    expect(opening(hoursOf([]), 'UTC', '2026-11-24T12:00:00Z')).toBeUndefined();
  });
});

describe('the hours of several zones', () => {
  test('all of them must be within the hours', () => {
    const hours = hoursOf(everyDay('08:00', '21:00'));

    expect(
      opening(hours, ['America/New_York', 'America/Los_Angeles'], '2026-11-24T13:00:00Z'),
    ).toBe('2026-11-24T16:00:00.000Z');
    expect(opening(hours, ['America/New_York', 'Pacific/Guam'], '2026-11-24T13:00:00Z')).toBe(
      '2026-11-24T22:00:00.000Z',
    );
  });

  test('zones that never agree have no opening', () => {
    const hours = hoursOf(everyDay('09:00', '10:00'));
    expect(
      opening(hours, ['America/New_York', 'Asia/Tokyo'], '2026-11-24T13:00:00Z'),
    ).toBeUndefined();
  });

  test('an earlier question does not change a later answer', () => {
    const calendar = createCallingHours(hoursOf(everyDay('08:00', '21:00')));
    const at = (time: string) => calendar.opening(['UTC'], Date.parse(time));

    expect(at('2026-11-24T21:00:00Z')).toBe(Date.parse('2026-11-25T08:00:00Z'));
    expect(at('2026-11-25T07:59:59.999Z')).toBe(Date.parse('2026-11-25T08:00:00Z'));
    expect(at('2026-11-25T08:00:00Z')).toBe(Date.parse('2026-11-25T08:00:00Z'));
    expect(at('2026-11-25T20:59:59.999Z')).toBe(Date.parse('2026-11-25T20:59:59.999Z'));
    expect(at('2026-11-25T21:00:00Z')).toBe(Date.parse('2026-11-26T08:00:00Z'));
    // Clocks of a process may also go back.
    expect(at('2026-11-24T12:00:00Z')).toBe(Date.parse('2026-11-24T12:00:00Z'));
  });
});

describe('the end of the hours', () => {
  const closing = (hours: WeeklyHours, zones: readonly string[], from: string) => {
    const closingMs = createCallingHours(hours).closing(zones, Date.parse(from));
    return closingMs === undefined ? undefined : new Date(closingMs).toISOString();
  };
  const day = hoursOf(everyDay('08:00', '21:00'));

  test('is the first in any zone', () => {
    expect(closing(day, ['UTC'], '2026-11-24T12:00:00Z')).toBe('2026-11-24T21:00:00.000Z');
    const both = ['America/New_York', 'America/Los_Angeles'];
    expect(closing(day, both, '2026-11-24T17:00:00Z')).toBe('2026-11-25T02:00:00.000Z');
  });

  test('is not midnight if the next day begins with a window', () => {
    const night = hoursOf([...everyDay('20:00', '24:00'), ...everyDay('00:00', '02:00')]);
    expect(closing(night, ['UTC'], '2026-11-24T21:00:00Z')).toBe('2026-11-25T02:00:00.000Z');
  });

  test('is not known for hours that last longer than a day, however often it is asked', () => {
    const calendar = createCallingHours(hoursOf(everyDay('00:00', '24:00')));
    const asked = ['2026-11-24T21:00:00Z', '2026-11-25T20:59:00Z', '2026-11-25T21:00:00Z'];
    const answers = asked.map((at) => calendar.closing(['UTC'], Date.parse(at)));
    expect(answers).toEqual([undefined, undefined, undefined]);
  });
});

describe('against a clock on the wall that is read every minute', () => {
  /** Days on which clocks change, the date line moves, or the calendar is unusual. */
  const days = [
    '2026-03-08',
    '2026-03-29',
    '2026-04-04',
    '2026-10-03',
    '2026-10-24',
    '2026-11-01',
    '2028-02-28',
    '2026-12-31',
    // Samoa skipped 30 December 2011.
    '2011-12-29',
    // Egypt changed its clocks twice within a month around Ramadan.
    '2014-06-26',
    '2010-08-10',
  ];
  const zones = [
    'America/New_York',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'Europe/London',
    'Europe/Berlin',
    'Africa/Cairo',
    'Africa/Casablanca',
    'Asia/Kathmandu',
    'Pacific/Apia',
    'Pacific/Chatham',
    'Pacific/Kiritimati',
    'Pacific/Pago_Pago',
    'America/Santiago',
    'UTC',
  ];
  const window = fc
    .tuple(
      fc.integer({ min: 0, max: 6 }),
      fc.integer({ min: 0, max: 1_439 }),
      fc.integer({ min: 1, max: 1_440 }),
    )
    .filter(([, from, until]) => from < until);

  test('the opening is the first minute that is within the hours in every zone', () => {
    fc.assert(
      fc.property(
        fc.array(window, { minLength: 1, maxLength: 8 }),
        fc.uniqueArray(fc.constantFrom(...zones), { minLength: 1, maxLength: 3 }),
        fc.constantFrom(...days),
        fc.integer({ min: 0, max: 1_439 }),
        fc.boolean(),
        (windows, inZones, day, minute, closesDay) => {
          const hours: WeeklyHours = {
            windows: Array.from({ length: 7 }, (_, weekday) =>
              windows
                .filter(([of]) => of === weekday)
                .map(([, fromMinute, untilMinute]) => ({ fromMinute, untilMinute })),
            ),
            closed: closesDay ? [day] : [],
          };
          const fromMs = Date.parse(day) + minute * minuteMs;
          const limitMs = fromMs + 3 * dayMs;
          const expected = firstOpenMinute(hours, inZones, fromMs, limitMs);

          const found = createCallingHours(hours).opening(inZones, fromMs);

          if (expected === undefined) expect(found ?? limitMs).toBeGreaterThanOrEqual(limitMs);
          else {
            expect(found).toBe(expected);
            const endMs = expected + 3 * 60 * minuteMs;
            const closingMs = createCallingHours(hours).closing(inZones, expected) ?? endMs;
            const closed = firstClosedMinute(hours, inZones, expected, endMs) ?? endMs;
            expect(Math.min(endMs, closingMs)).toBe(closed);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  const clocks = new Map(
    zones.map((timeZone) => [
      timeZone,
      new Intl.DateTimeFormat('en-CA', {
        ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit' },
        ...{ hour: '2-digit', minute: '2-digit' },
      }),
    ]),
  );

  /** `2026-03-08, 03:00` */
  function isOpen({ windows, closed }: WeeklyHours, zone: string, atMs: number): boolean {
    const [date = '', time = ''] = clocks.get(zone)?.format(atMs).split(', ') ?? [];
    if (closed.includes(date)) return false;
    const minute = minutesOf(time);
    return (windows[new Date(`${date}T00:00:00Z`).getUTCDay()] ?? []).some(
      ({ fromMinute, untilMinute }) => fromMinute <= minute && minute < untilMinute,
    );
  }

  function firstClosedMinute(
    hours: WeeklyHours,
    inZones: readonly string[],
    fromMs: number,
    limitMs: number,
  ): number | undefined {
    for (let atMs = fromMs; atMs < limitMs; atMs += minuteMs) {
      if (!inZones.every((zone) => isOpen(hours, zone, atMs))) return atMs;
    }
    return undefined;
  }

  function firstOpenMinute(
    hours: WeeklyHours,
    inZones: readonly string[],
    fromMs: number,
    limitMs: number,
  ): number | undefined {
    for (let atMs = fromMs; atMs < limitMs; atMs += minuteMs) {
      if (inZones.every((zone) => isOpen(hours, zone, atMs))) return atMs;
    }
    return undefined;
  }
});
