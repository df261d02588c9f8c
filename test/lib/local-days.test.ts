import { describe, expect, test } from 'vitest';
import { beginningOfDay, dayAfter, dayAt, isTimeZone } from '../../src/lib/local-days.ts';

describe('a day in a time zone', () => {
  test.each([
    ['2026-11-24', 'UTC', '2026-11-24T00:00:00.000Z'],
    ['2026-11-24', 'Europe/Berlin', '2026-11-23T23:00:00.000Z'],
    ['2026-07-24', 'Europe/Berlin', '2026-07-23T22:00:00.000Z'],
    ['2026-11-24', 'America/Los_Angeles', '2026-11-24T08:00:00.000Z'],
    ['2026-11-24', 'Asia/Kolkata', '2026-11-23T18:30:00.000Z'],
    ['2026-11-24', 'Asia/Kathmandu', '2026-11-23T18:15:00.000Z'],
    ['2026-11-24', 'Pacific/Kiritimati', '2026-11-23T10:00:00.000Z'],
    ['2026-11-24', 'Etc/GMT+12', '2026-11-24T12:00:00.000Z'],
    // The clock jumps from 24:00 to 01:00 in Cairo, and from 23:59:59 back to 23:00 in October.
    ['2026-04-24', 'Africa/Cairo', '2026-04-23T22:00:00.000Z'],
    ['2026-10-30', 'Africa/Cairo', '2026-10-29T22:00:00.000Z'],
  ])('%s in %s begins at %s', (day, zone, instant) => {
    const beginning = beginningOfDay(day, zone);

    expect(beginning.toISOString()).toBe(instant);
    expect(dayAt(beginning, zone)).toBe(day);
    expect(dayAt(new Date(beginning.getTime() - 1), zone) < day).toBe(true);
  });

  test.each([
    ['2026-03-29', 23],
    ['2026-10-25', 25],
    ['2026-11-24', 24],
  ])('%s has %i hours in Berlin', (day, hours) => {
    const zone = 'Europe/Berlin';
    const ms = beginningOfDay(dayAfter(day), zone).getTime() - beginningOfDay(day, zone).getTime();

    expect(ms / 3_600_000).toBe(hours);
  });

  test.each(['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+12'])(
    '%s is a time zone',
    (text) => {
      expect(isTimeZone(text)).toBe(true);
    },
  );

  test.each(['', 'Berlin', '+01:00', 'Europe/Berlin; drop', 'CET+1'])(
    '%j is no time zone',
    (text) => {
      expect(isTimeZone(text)).toBe(false);
    },
  );
});
