import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRules } from '../../src/rules/compile-rules.ts';
import { type CallFacts, type Decision, decide } from '../../src/rules/decide.ts';
import type { RuleSetDocument } from '../../src/rules/rule-set.ts';

/** A Tuesday, 11:00 in New York. */
const now = new Date('2026-11-24T16:00:00.000Z');
const hourMs = 3_600_000;
const ago = (hours: number): Date => new Date(now.getTime() - hours * hourMs);
const ahead = (hours: number): Date => ago(-hours);

const windows = [{ days: 'mon-sun', from: '08:00', until: '21:00' }];
/** At 11:00, these are over. */
const mornings = [{ days: 'mon-sun', from: '08:00', until: '11:00' }];
const tomorrowMorning = new Date('2026-11-25T13:00:00.000Z');

function decisionOf(
  document: RuleSetDocument | undefined,
  facts: Partial<CallFacts> = {},
): Decision {
  const rules = document === undefined ? undefined : compileRules(document);
  return decide(rules, { number: '12025550110', attemptedAt: [], ...facts }, now);
}

const permitted = { kind: 'permitted' };

describe('suppression', () => {
  test('ends a call even without a rule set', () => {
    expect(decisionOf(undefined, { suppression: {} })).toEqual({
      kind: 'fail',
      rule: 'suppressed',
    });
  });

  test('says when it ends', () => {
    expect(decisionOf({}, { suppression: { until: ahead(5) } })).toEqual({
      kind: 'fail',
      rule: 'suppressed',
      notBefore: ahead(5),
    });
  });

  test('comes before all other rules', () => {
    expect(
      decisionOf({ hours: { windows: mornings, otherwise: 'wait' } }, { suppression: {} }),
    ).toMatchObject({ rule: 'suppressed' });
  });
});

describe('hours', () => {
  test('permit a call within them', () => {
    expect(decisionOf({ hours: { windows } })).toEqual(permitted);
  });

  test('end a call outside them', () => {
    expect(decisionOf({ hours: { windows: mornings } })).toEqual({
      kind: 'fail',
      rule: 'hours',
      notBefore: tomorrowMorning,
    });
  });

  test('let a call wait', () => {
    expect(decisionOf({ hours: { windows: mornings, otherwise: 'wait' } })).toEqual({
      kind: 'wait',
      rule: 'hours',
      until: tomorrowMorning,
    });
  });

  test('of the rule set’s zone apply to every number', () => {
    const inLondon = { hours: { zones: 'Europe/London', windows: mornings } };
    expect(decisionOf(inLondon)).toMatchObject({ notBefore: new Date('2026-11-25T08:00:00Z') });
  });

  test('of the request’s zone take precedence', () => {
    const timeZone = 'America/Los_Angeles';
    for (const zones of ['callee', 'Europe/London']) {
      expect(decisionOf({ hours: { zones, windows: mornings } }, { timeZone })).toEqual(permitted);
    }
  });

  test('refuse a number whose zones aren’t known, and do not let it wait', () => {
    const hours = { windows, otherwise: 'wait' as const };
    expect(decisionOf({ hours }, { number: '870773111632' })).toEqual({
      kind: 'fail',
      rule: 'hours',
    });
    expect(decisionOf({ hours }, { number: '870773111632', timeZone: 'America/New_York' })).toEqual(
      permitted,
    );
  });
});

describe('attempts', () => {
  const rule = { attempts: [{ most: 3, within: '24h' }] };

  test('permit fewer than `most`', () => {
    expect(decisionOf(rule, { attemptedAt: [ago(1), ago(2)] })).toEqual(permitted);
  });

  test('refuse the next one until the first of them is old enough', () => {
    expect(decisionOf(rule, { attemptedAt: [ago(2), ago(23), ago(1), ago(30)] })).toEqual({
      kind: 'fail',
      rule: 'attempts',
      notBefore: ahead(1),
    });
  });

  test('do not count an attempt that is exactly as old as the period', () => {
    expect(decisionOf(rule, { attemptedAt: [ago(24), ago(2), ago(1)] })).toEqual(permitted);
  });

  test('apply all rules, and name the last time', () => {
    const both = { attempts: [...rule.attempts, { most: 4, within: '30d' }] };
    const attemptedAt = [ago(1), ago(2), ago(3), ago(48)];
    expect(decisionOf(both, { attemptedAt })).toMatchObject({ notBefore: ahead(30 * 24 - 48) });
  });

  test('a rule that ends the call is not outvoted by one that lets it wait', () => {
    const both: RuleSetDocument = {
      attempts: [
        { most: 1, within: '2h', otherwise: 'wait' },
        { most: 2, within: '24h' },
      ],
    };
    expect(decisionOf(both, { attemptedAt: [ago(1)] })).toMatchObject({
      kind: 'wait',
      until: ahead(1),
    });
    expect(decisionOf(both, { attemptedAt: [ago(1), ago(2)] })).toMatchObject({ kind: 'fail' });
  });

  const dialled = fc.array(fc.integer({ min: 0, max: 600 }), { maxLength: 40 });

  test('never permit more than `most` within any period', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), dialled, (most, gapsS) => {
        const rules = compileRules({ attempts: [{ most, within: '10m' }] });
        const attemptedAt: Date[] = [];
        let at = now.getTime();
        for (const gapS of gapsS) {
          at += gapS * 1_000;
          const facts = { number: '12025550110', attemptedAt };
          if (decide(rules, facts, new Date(at)).kind === 'permitted') {
            attemptedAt.push(new Date(at));
          }
        }
        for (const [index, time] of attemptedAt.slice(most).entries()) {
          const spanMs = time.getTime() - (attemptedAt[index]?.getTime() ?? 0);
          expect(spanMs).toBeGreaterThanOrEqual(600_000);
        }
      }),
    );
  });

  test('`notBefore` is the first moment at which the call is permitted', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), dialled, (most, agoS) => {
        const rules = compileRules({ attempts: [{ most, within: '10m' }] });
        const attemptedAt = agoS.map((seconds) => new Date(now.getTime() - seconds * 1_000));
        const facts = { number: '12025550110', attemptedAt };
        const { notBefore = now } = decide(rules, facts, now) as { notBefore?: Date };

        expect(decide(rules, facts, notBefore)).toEqual(permitted);
        if (notBefore !== now) {
          const earlier = new Date(notBefore.getTime() - 1);
          expect(decide(rules, facts, earlier)).toMatchObject({ rule: 'attempts' });
        }
      }),
    );
  });
});

describe('rest', () => {
  const rule = { rest: { afterAbandoned: '72h', afterAnswered: '7d' } };

  test('leaves a number alone after an answer', () => {
    expect(decisionOf(rule, { answeredAt: ago(24) })).toEqual({
      kind: 'fail',
      rule: 'rest',
      notBefore: ahead(6 * 24),
    });
    expect(decisionOf(rule, { answeredAt: ago(7 * 24) })).toEqual(permitted);
  });

  test('leaves a number alone after an abandoned call', () => {
    expect(decisionOf(rule, { abandonedAt: ago(71) })).toMatchObject({ notBefore: ahead(1) });
    expect(decisionOf({ rest: { afterAnswered: '7d' } }, { abandonedAt: ago(1) })).toEqual(
      permitted,
    );
  });
});

describe('several rules', () => {
  const document: RuleSetDocument = {
    hours: { windows: mornings, otherwise: 'wait' },
    attempts: [{ most: 1, within: '24h', otherwise: 'wait' }],
    rest: { afterAnswered: '7d' },
  };

  test('hours are named before attempts, and attempts before rest', () => {
    const facts = { attemptedAt: [ago(1)], answeredAt: ago(1) };
    expect(decisionOf(document, facts)).toMatchObject({ kind: 'wait', rule: 'hours' });
    expect(decisionOf({ ...document, hours: { windows } }, facts)).toMatchObject({
      rule: 'attempts',
    });
    expect(decisionOf({ rest: { afterAnswered: '7d' } }, facts)).toMatchObject({ rule: 'rest' });
  });

  test('a call waits until all rules that let it wait permit it', () => {
    // The attempts permit it at 15:00 tomorrow, when the morning is over.
    expect(decisionOf(document, { attemptedAt: [ago(-4)] })).toEqual({
      kind: 'wait',
      rule: 'hours',
      until: new Date('2026-11-26T13:00:00.000Z'),
    });
  });

  test('a rule that would end the call is left for when it has waited', () => {
    expect(decisionOf(document, { answeredAt: ago(1) })).toEqual({
      kind: 'wait',
      rule: 'hours',
      until: tomorrowMorning,
    });
  });

  test('`notBefore` is when all rules permit the call', () => {
    const strict = { ...document, hours: { windows: mornings } };
    expect(decisionOf(strict, { answeredAt: ago(1) })).toEqual({
      kind: 'fail',
      rule: 'hours',
      // Seven days after the answer it is 10:00 in New York.
      notBefore: ahead(7 * 24 - 1),
    });
  });
});

describe('a held campaign', () => {
  const campaignHeldUntil = () => ahead(1);

  test('waits', () => {
    expect(decisionOf({}, { campaignHeldUntil })).toEqual({
      kind: 'wait',
      rule: 'abandoned-rate',
      until: ahead(1),
    });
    expect(decisionOf({}, { campaignHeldUntil: () => undefined })).toEqual(permitted);
  });

  test('is not asked if another rule refuses the call, because asking may spend a probe', () => {
    const asked: string[] = [];
    const ask = () => {
      asked.push('asked');
      return undefined;
    };

    decisionOf({ hours: { windows: mornings } }, { campaignHeldUntil: ask });
    decisionOf({}, { suppression: {}, campaignHeldUntil: ask });

    expect(asked).toEqual([]);
  });
});

test('only suppression applies to a target that is not a number', () => {
  const facts = { attemptedAt: [ago(1)], answeredAt: ago(1), campaignHeldUntil: () => ahead(1) };
  const rules = compileRules({
    hours: { windows: mornings },
    attempts: [{ most: 1, within: '24h' }],
    rest: { afterAnswered: '7d' },
  });

  expect(decide(rules, facts, now)).toEqual(permitted);
  expect(decide(rules, { ...facts, suppression: {} }, now)).toMatchObject({ rule: 'suppressed' });
});
