import { describe, expect, test } from 'vitest';
import { describeIssues } from '../../src/lib/issues.ts';
import { compileRules, whyNeverPermitted } from '../../src/rules/compile-rules.ts';
import { type RuleSetDocument, ruleSetSchema } from '../../src/rules/rule-set.ts';

const monday = { days: 'mon', from: '08:00', until: '21:00' };

/** The paths and messages of the errors of a document. */
function errorsOf(document: unknown): readonly string[] {
  const { error } = ruleSetSchema.safeParse(document, { error: describeIssues });
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`);
}

describe('a rule set', () => {
  test('may have every rule', () => {
    const document = {
      hours: {
        zones: 'callee',
        windows: [
          { days: 'mon-fri', from: '08:00', until: '21:00' },
          { days: 'sat', from: '09:00', until: '24:00' },
        ],
        closed: ['2026-12-25'],
        otherwise: 'wait',
      },
      attempts: [
        { most: 3, within: '24h' },
        { most: 4, within: '30d', otherwise: 'wait' },
      ],
      rest: { afterAbandoned: '72h', afterAnswered: '7d' },
      consent: 'required',
      ringAtLeastMs: 15_000,
      voice: 'artificial',
      connected: 'bot-or-agent',
      abandoned: { formula: 'ftc', most: 3, allow: 0, hold: true },
    };

    expect(ruleSetSchema.parse(document)).toEqual(document);
  });

  test('may be empty', () => {
    expect(errorsOf({})).toEqual([]);
  });

  const hours = (changes: object) => ({ hours: { windows: [monday], ...changes } });

  test.each([
    [{ hour: {} }, ' unknown: hour'],
    [{ hours: {} }, 'hours.windows is required'],
    [
      { hours: { windows: [] } },
      'hours.windows must have a window, because without one no call is ever permitted',
    ],
    [
      hours({ windows: [{ ...monday, days: 'fri-mon' }] }),
      'hours.windows.0.days must be days such as mon-fri or mon,wed, in which a range runs forward from mon to sun',
    ],
    [
      hours({ windows: [monday, { ...monday, until: '08:00' }] }),
      'hours.windows.1.until must be later than from: a window does not cross midnight, so use two windows',
    ],
    [
      hours({ windows: [{ ...monday, from: '24:00' }] }),
      'hours.windows.0.from must be a time from 00:00 to 23:59',
    ],
    [
      hours({ windows: [{ ...monday, until: '24:30' }] }),
      'hours.windows.0.until must be a time from 00:01 to 24:00',
    ],
    [
      hours({ zones: 'Mars/Olympus' }),
      'hours.zones must be callee or an IANA time zone, e.g. Europe/London',
    ],
    [hours({ closed: ['2026-02-30'] }), 'hours.closed.0 must be a date such as 2026-12-25'],
    [hours({ otherwise: 'later' }), 'hours.otherwise must be one of wait, fail'],
    [{ attempts: [{ most: 0, within: '24h' }] }, 'attempts.0.most must be at least 1'],
    [{ attempts: [{ most: 101, within: '24h' }] }, 'attempts.0.most must be at most 100'],
    [
      { attempts: [{ most: 1, within: '24' }] },
      'attempts.0.within must be a number with m, h or d, e.g. 90m, 24h or 30d',
    ],
    [
      { attempts: [{ most: 1, within: '1w' }] },
      'attempts.0.within must be a number with m, h or d, e.g. 90m, 24h or 30d',
    ],
    [{ attempts: [{ most: 1, within: '367d' }] }, 'attempts.0.within must be from 1m to 366d'],
    [{ attempts: [{ most: 1, within: '0h' }] }, 'attempts.0.within must be from 1m to 366d'],
    [{ rest: {} }, 'rest needs afterAbandoned or afterAnswered'],
    [{ consent: 'optional' }, 'consent must be one of required'],
    [{ ringAtLeastMs: 180_001 }, 'ringAtLeastMs must be at most 180000'],
    [{ voice: 'robot' }, 'voice must be one of live, artificial, recorded'],
    [
      { abandoned: { formula: 'ofcom', most: 3 } },
      'abandoned.most cannot be combined with formula ofcom, which has no limit and only measures',
    ],
    [
      { abandoned: { formula: 'ftc', hold: true } },
      'abandoned.hold needs most, the share above which calls wait',
    ],
    [
      { abandoned: { formula: 'ftc', allow: 0 } },
      'abandoned.allow needs most, the share that applies above it',
    ],
  ])('%j is refused', (document, error) => {
    expect(errorsOf(document)).toEqual([error]);
  });

  test('takes at most ten rules about attempts', () => {
    const rules = Array.from({ length: 11 }, () => ({ most: 1, within: '1h' }));
    expect(errorsOf({ attempts: rules })).toEqual(['attempts must be at most 10 items long']);
  });
});

describe('days', () => {
  test.each([
    ['mon-sun', 7],
    ['mon', 1],
    ['mon,wed', 2],
    ['mon-wed,sat', 4],
    ['sat-sun,sat', 2],
  ])('%s are %i days', (days, count) => {
    const document = { hours: { windows: [{ ...monday, days }] } };
    const { hours } = compileRules(ruleSetSchema.parse(document));
    // 23 November 2026 is a Monday.
    const open = Array.from({ length: 7 }, (_, day) => Date.UTC(2026, 10, 23 + day, 12)).filter(
      (noon) => hours?.calendar.opening(['UTC'], noon) === noon,
    );
    expect(open).toHaveLength(count);
  });

  test.each(['', 'monday', 'mon-', '-fri', 'mon--fri', 'mon-tue-wed', 'mon,', 'MON', 'mon fri'])(
    '%j are no days',
    (days) => {
      expect(errorsOf({ hours: { windows: [{ ...monday, days }] } })).toHaveLength(1);
    },
  );
});

describe('a rule set that could never permit a call', () => {
  const now = new Date('2026-11-24T12:00:00Z');
  const problem = (document: RuleSetDocument) => whyNeverPermitted(compileRules(document), now);

  test('is found if every day with a window is closed for a year', () => {
    const mondays = Array.from({ length: 54 }, (_, week) =>
      new Date(Date.UTC(2026, 10, 23 + week * 7)).toISOString().slice(0, 10),
    );

    expect(problem({ hours: { windows: [monday], closed: mondays } })).toEqual({
      path: 'hours.closed',
      message: 'leaves no day within a year on which calls are permitted',
    });
    expect(problem({ hours: { windows: [monday], closed: mondays.slice(0, 50) } })).toBeUndefined();
  });
});

describe('the defaults', () => {
  test('rules fail, the zones are the number’s, the voice is live, agents count, five may be abandoned', () => {
    const rules = compileRules({
      hours: { windows: [monday] },
      attempts: [{ most: 1, within: '90m' }],
      rest: { afterAnswered: '7d' },
      abandoned: { formula: 'ftc', most: 3 },
    });

    expect(rules).toMatchObject({
      hours: { zones: 'callee', otherwise: 'fail' },
      attempts: [{ most: 1, withinMs: 5_400_000, otherwise: 'fail' }],
      rest: { afterAbandonedMs: 0, afterAnsweredMs: 604_800_000, otherwise: 'fail' },
      consentRequired: false,
      voice: 'live',
      connected: 'agent',
      abandoned: { formula: 'ftc', most: 3, allow: 5, hold: false },
    });
  });
});
