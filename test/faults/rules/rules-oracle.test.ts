// Tests the oracle of the rules storm: it detects each kind of forbidden INVITE, and no other.

import { describe, expect, test } from 'vitest';
import {
  forbiddenInvites,
  type Invite,
  type PlainRules,
  type RulesAftermath,
  type RulesInForce,
} from './rules-oracle.ts';
import type { SuppressionRequest } from './suppression-history.ts';

/** Noon in UTC: 05:00 in Arizona, 21:00 in Japan. */
const noon = Date.parse('2026-03-01T12:00:00.000Z');
const arizona = '16025550100';
const japan = '819012345678';

const invite = (seconds: number, more: Partial<Invite> = {}): Invite => ({
  ...{ at: noon + seconds * 1_000, checkedAfter: noon + seconds * 1_000 },
  ...{ callId: `call-${seconds}`, accountId: 'one', number: arizona, gateway: 1, ...more },
});
const inForce = (rules: PlainRules, from = -60, until = 3_600): RulesInForce => ({
  ...{ accountId: 'one', name: 'default', rules },
  ...{ from: noon + from * 1_000, until: noon + until * 1_000 },
});
/** A request from one second to another. Without the second, it has no answer. */
const request = (
  from: number,
  answered: number | undefined,
  more: Partial<SuppressionRequest>,
): SuppressionRequest => ({
  ...{ accountId: 'one', number: arizona, askedAt: noon + from * 1_000, suppressedUntil: 0 },
  ...(answered === undefined ? {} : { answeredAt: noon + answered * 1_000 }),
  ...more,
});
const put = (from: number, answered?: number, more: Partial<SuppressionRequest> = {}) =>
  request(from, answered, { suppressedUntil: Number.POSITIVE_INFINITY, ...more });
const remove = (from: number, answered?: number, more: Partial<SuppressionRequest> = {}) =>
  request(from, answered, more);
const callsOf = (aftermath: Partial<RulesAftermath>): readonly string[] =>
  forbiddenInvites({ invites: [], suppressions: [], rules: [], ...aftermath }).map(
    (violation) => violation.split(' ')[0] ?? '',
  );

describe('the oracle finds an INVITE', () => {
  const suppressedAt = (suppressions: readonly SuppressionRequest[], ...seconds: number[]) =>
    callsOf({ suppressions, invites: seconds.map((at) => invite(at)) });

  test('to a number that is suppressed, from the answer to the PUT until the DELETE or its end', () => {
    const suppressions = [put(8, 10), remove(20, 22)];

    expect(suppressedAt(suppressions, 9, 10, 19, 20)).toEqual(['call-10', 'call-19']);
    expect(suppressedAt([put(8, 10, { suppressedUntil: noon + 15_000 })], 14, 15)).toEqual([
      'call-14',
    ]);
    expect(callsOf({ suppressions, invites: [invite(15, { accountId: 'two' })] })).toEqual([]);
    expect(callsOf({ suppressions, invites: [invite(15, { number: japan })] })).toEqual([]);
    expect(callsOf({ suppressions, invites: [invite(15, { gateway: 2 })] })).toEqual(['call-15']);
  });

  test('to a number that requests which overlap, or were not answered, leave suppressed in any order', () => {
    // Either request may have been the last.
    expect(suppressedAt([put(0, 10), remove(5, 6)], 20)).toEqual([]);
    expect(suppressedAt([put(0, 10), remove(5)], 20)).toEqual([]);
    expect(suppressedAt([put(0, 10), remove(5, 6), put(9, 12)], 11, 13)).toEqual(['call-13']);
    expect(suppressedAt([put(0, 2), put(3, 9), remove(1, 2)], 5, 10)).toEqual(['call-10']);
    // A PUT without an answer proves nothing. A DELETE without one excuses until it is over.
    expect(suppressedAt([put(0)], 5)).toEqual([]);
    expect(suppressedAt([put(0, 2), remove(3), put(5, 8)], 9)).toEqual([]);
    expect(
      suppressedAt([put(0, 2), remove(3, undefined, { overAt: noon + 4_000 }), put(5, 8)], 7, 9),
    ).toEqual(['call-9']);
  });

  test('outside the hours of its number, also to a further gateway', () => {
    const rules = [inForce({ hours: [{ from: 20 * 60, until: 22 * 60 }] })];

    expect(callsOf({ rules, invites: [invite(0)] })).toEqual(['call-0']);
    expect(callsOf({ rules, invites: [invite(0, { number: japan })] })).toEqual([]);
    expect(
      callsOf({ rules: [inForce({ hours: [{ from: 0, until: 300 }] })], invites: [invite(-1)] }),
    ).toEqual([]);
    expect(callsOf({ rules, invites: [invite(3_500, { number: japan })] })).toEqual([]);
    expect(
      callsOf({
        rules,
        invites: [invite(3_600, { number: japan, checkedAfter: noon, gateway: 2 })],
      }),
    ).toEqual(['call-3600']);
    expect(callsOf({ rules, invites: [invite(0, { rules: 'other' })] })).toEqual([]);
  });

  test('beyond the attempts, which further gateways are not', () => {
    const rules = [inForce({ attempts: { most: 2, withinMs: 60_000 } })];

    expect(callsOf({ rules, invites: [0, 10, 59.999].map((at) => invite(at)) })).toEqual([
      'call-59.999',
    ]);
    expect(callsOf({ rules, invites: [0, 10, 60].map((at) => invite(at)) })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(0), invite(1, { gateway: 2 }), invite(10)] })).toEqual(
      [],
    );
  });

  test('beyond the attempts, unless it overtook the call of a rule set that permits more', () => {
    const rules = [
      inForce({ attempts: { most: 1, withinMs: 60_000 } }),
      { ...inForce({ attempts: { most: 3, withinMs: 60_000 } }), name: 'loose' },
    ];
    const loose = invite(0, { rules: 'loose' });
    const strict = (checkedAfter: number) => invite(1, { checkedAfter: noon + checkedAfter });

    expect(callsOf({ rules, invites: [loose, strict(-1)] })).toEqual([]);
    expect(callsOf({ rules, invites: [loose, strict(0)] })).toEqual(['call-1']);
    expect(callsOf({ rules, invites: [invite(0), strict(-1)] })).toEqual(['call-1']);
    const many = [invite(-3, { rules: 'loose' }), invite(-2, { rules: 'loose' }), loose];
    expect(callsOf({ rules, invites: [...many, strict(-1)] })).toEqual(['call-1']);
  });

  test('too soon after an answer that was stored before the call was checked', () => {
    const rules = [inForce({ afterAnsweredMs: 60_000 })];
    const answered = invite(0, { answeredAt: noon, answerStoredAt: noon + 100 });

    expect(callsOf({ rules, invites: [answered, invite(30)] })).toEqual(['call-30']);
    expect(callsOf({ rules, invites: [answered, invite(60)] })).toEqual([]);
    expect(callsOf({ rules, invites: [answered, invite(1, { checkedAfter: noon + 99 })] })).toEqual(
      [],
    );
    expect(callsOf({ rules, invites: [invite(0, { answeredAt: noon }), invite(30)] })).toEqual([]);
  });

  test('only if no version permits it that may have been in force since its check', () => {
    const rules = [
      inForce({ attempts: { most: 1, withinMs: 60_000 } }, -60, 20),
      inForce({ attempts: { most: 5, withinMs: 60_000 } }, 18),
    ];

    expect(callsOf({ rules, invites: [invite(0), invite(10)] })).toEqual(['call-10']);
    expect(callsOf({ rules, invites: [invite(0), invite(19)] })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(0), invite(30)] })).toEqual([]);
    const late = invite(30, { checkedAfter: noon + 10_000 });
    expect(callsOf({ rules: rules.toReversed(), invites: [invite(0), late] })).toEqual([]);
  });
});
