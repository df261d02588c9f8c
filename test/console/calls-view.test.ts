// The filters of the list of calls, as they stand in the page's address.

import { describe, expect, test } from 'vitest';
import * as gatewayDays from '../../src/lib/local-days.ts';

type View = Readonly<Record<string, string>>;
type Asked = {
  readonly botId?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly missing?: string;
};

const load = async (name: string): Promise<unknown> =>
  await import(new URL(`../../src/console/page/${name}`, import.meta.url).href);
const view = (await load('calls-view.js')) as {
  readonly readView: (query: string) => View;
  readonly addressOf: (view: View) => string;
  readonly isFiltered: (view: View) => boolean;
  readonly countOfFolded: (view: View) => number;
  readonly periodOf: (view: View, nowMs: number) => string;
  readonly listQueryOf: (view: View) => Asked;
  readonly summaryQueryOf: (view: View, nowMs: number) => Asked;
};
const days = (await load('local-days.js')) as {
  readonly ownTimeZone: string;
  readonly beginningOfDay: (day: string, zone: string) => number;
  readonly dayAt: (ms: number, zone: string) => string;
  readonly daysLater: (day: string, days: number) => string;
};

const nowMs = Date.parse('2026-11-28T23:30:00Z');
const berlin = { from: '2026-10-24', to: '2026-10-25', zone: 'Europe/Berlin' };

describe('the address', () => {
  test('has the filters, and gives them back', () => {
    const whole = {
      ...{ ...berlin, number: '+12025550110', bot: 'bot 1', campaign: 'autumn / 1 & ü' },
      ...{ verdict: 'amd_human_detected', result: 'busy', cursor: 'MTc2' },
    };
    const address = view.addressOf(whole);

    expect(address).toMatch(/^#\/calls\?from=2026-10-24&/);
    expect(view.readView(address.split('?')[1] ?? '')).toEqual(whole);
    expect(view.addressOf({})).toBe('#/calls');
    expect(view.addressOf({ bot: '' })).toBe('#/calls');
  });

  test.each([
    ['from=yesterday&to=2026-02-30', {}],
    ['zone=Europe/Berlin', {}],
    ['verdict=human&result=engaged&limit=7', {}],
    ['number=%20&campaign=', {}],
    [`from=2026-10-25&to=2026-10-24&zone=Europe/Berlin`, berlin],
    ['from=2026-10-24&zone=Mars', { from: '2026-10-24', zone: days.ownTimeZone }],
  ])('that was typed, ?%s, is read without what is no filter', (query, expected) => {
    expect(view.readView(query)).toEqual(expected);
  });

  test('names the period whose days it has today', () => {
    const zone = 'Asia/Tokyo';
    // In Tokyo it is already the 29th.
    const name = (from: string, to: string) => view.periodOf({ from, to, zone }, nowMs);

    expect(name('2026-11-29', '2026-11-29')).toBe('today');
    expect(name('2026-11-28', '2026-11-28')).toBe('yesterday');
    expect(name('2026-11-23', '2026-11-29')).toBe('week');
    expect(name('2026-10-31', '2026-11-29')).toBe('month');
    expect(name('2026-11-01', '2026-11-02')).toBe('days');
    expect(view.periodOf({ bot: 'b' }, nowMs)).toBe('any');
    expect([view.isFiltered({ cursor: 'x' }), view.isFiltered({ bot: 'b' })]).toEqual([
      false,
      true,
    ]);
  });
});

test('a phone folds all filters but the number, and days are one filter', () => {
  const count = (query: string) => view.countOfFolded(view.readView(query));

  expect(count('')).toBe(0);
  expect(count('number=%2B12025550110&cursor=abc')).toBe(0);
  expect(count('from=2026-11-01&to=2026-11-02&zone=UTC&bot=sales&result=busy')).toBe(3);
});

describe('the list', () => {
  test('is of whole days in their zone, and of one bot', () => {
    expect(view.listQueryOf({ ...berlin, bot: 'bot-1', campaign: 'c', cursor: 'x' })).toEqual({
      botId: 'bot-1',
      query: {
        ...{ from: '2026-10-23T22:00:00.000Z', to: '2026-10-25T23:00:00.000Z' },
        ...{ campaign: 'c', cursor: 'x' },
      },
    });
    expect(view.listQueryOf({ from: '2026-10-24', zone: 'UTC' }).query).toEqual({
      from: '2026-10-24T00:00:00.000Z',
    });
  });

  test.each([
    ['busy', { outcome: 'busy' }],
    ['completed', { outcome: 'completed' }],
    ['ringing', { status: 'ringing' }],
    ['failed', { status: 'failed' }],
  ])('has the result %s', (result, query) => {
    expect(view.listQueryOf({ result }).query).toEqual(query);
  });

  test.each([
    ['+1 202 555 0110', '+12025550110'],
    ['+1 (202) 555-0110', '+12025550110'],
    ['(030) 1234', '0301234'],
    ['anna.b', 'anna.b'],
  ])('finds the number %s', (number, asked) => {
    expect(view.listQueryOf({ number }).query).toEqual({ number: asked });
  });
});

describe('the totals', () => {
  test('are of the same days, or of today', () => {
    const query = { from: '2026-10-23T22:00:00.000Z', to: '2026-10-25T23:00:00.000Z' };
    expect(view.summaryQueryOf({ ...berlin, bot: 'bot-1' }, nowMs)).toEqual({
      botId: 'bot-1',
      query: { ...query, timeZone: 'Europe/Berlin' },
    });
    const { query: today } = view.summaryQueryOf({ result: 'busy' }, nowMs);
    expect(Date.parse(today?.['to'] ?? '')).toBeGreaterThan(nowMs);
    expect(today).toMatchObject({ timeZone: days.ownTimeZone, outcome: 'busy' });
    expect(view.summaryQueryOf({ from: '2026-11-01', zone: 'UTC' }, nowMs).query).toMatchObject({
      ...{ from: '2026-11-01T00:00:00.000Z', to: '2026-11-29T00:00:00.000Z' },
    });
  });

  test.each([
    [{ number: '+12025550110' }, 'number'],
    [{ campaign: 'autumn' }, 'campaign'],
    [{ from: '2026-01-01', to: '2026-11-01', zone: 'UTC' }, '92 days'],
    [{ to: '2026-11-01', zone: 'UTC' }, 'first day'],
  ])('of %j are missing, and the page says why', (filters, words) => {
    expect(view.summaryQueryOf(filters, nowMs).missing).toContain(words);
  });
});

test.each(['UTC', 'Europe/Berlin', 'America/Santiago', 'Asia/Kathmandu', 'Pacific/Apia'])(
  'days of %s begin when the gateway says so',
  (zone) => {
    for (let day = '2026-03-01'; day < '2026-12-01'; day = days.daysLater(day, 1)) {
      const beginning = days.beginningOfDay(day, zone);
      expect(beginning).toBe(gatewayDays.beginningOfDay(day, zone).getTime());
      expect([days.dayAt(beginning, zone), days.dayAt(beginning - 1_000, zone)]).toEqual([
        ...[day, days.daysLater(day, -1)],
      ]);
    }
  },
);
