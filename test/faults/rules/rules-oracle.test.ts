// Tests the oracle of the rules storm: it detects each kind of forbidden INVITE, and no other.

import { describe, expect, test } from 'vitest';
import type { Invite } from './callee.ts';
import {
  forbiddenInvites,
  type PlainRules,
  type RulesAftermath,
  type RulesInForce,
} from './rules-oracle.ts';

/** Noon in UTC: 05:00 in Arizona, 21:00 in Japan. */
const noon = Date.parse('2026-03-01T12:00:00.000Z');
const arizona = '16025550100';
const japan = '819012345678';

const invite = (seconds: number, more: Partial<Invite> = {}): Invite => ({
  ...{ at: noon + seconds * 1_000, callId: `call-${seconds}`, accountId: 'one' },
  ...{ number: arizona, gateway: 1, ...more },
});
const inForce = (rules: PlainRules, from = -60, until = 3_600): RulesInForce => ({
  ...{ accountId: 'one', name: 'default', rules },
  ...{ from: noon + from * 1_000, until: noon + until * 1_000 },
});
const callsOf = (aftermath: Partial<RulesAftermath>): readonly string[] =>
  forbiddenInvites({ invites: [], suppressed: [], rules: [], ...aftermath }).map(
    (violation) => violation.split(' ')[0] ?? '',
  );

describe('the oracle finds an INVITE', () => {
  test('to a number that is suppressed, not before its PUT was answered or after its end', () => {
    const suppressed = [
      { accountId: 'one', number: arizona, from: noon + 10_000, until: noon + 20_000 },
    ];

    expect(callsOf({ suppressed, invites: [9, 10, 19, 20].map((at) => invite(at)) })).toEqual([
      ...['call-10', 'call-19'],
    ]);
    expect(callsOf({ suppressed, invites: [invite(15, { accountId: 'two' })] })).toEqual([]);
    expect(callsOf({ suppressed, invites: [invite(15, { number: japan })] })).toEqual([]);
    expect(callsOf({ suppressed, invites: [invite(15, { gateway: 2 })] })).toEqual(['call-15']);
  });

  test('outside the hours of its number', () => {
    const rules = [inForce({ hours: [{ from: 20 * 60, until: 22 * 60 }] })];

    expect(callsOf({ rules, invites: [invite(0)] })).toEqual(['call-0']);
    expect(callsOf({ rules, invites: [invite(0, { number: japan })] })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(3_500, { number: japan })] })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(0, { rules: 'other' })] })).toEqual([]);
  });

  test('beyond the attempts, which further gateways are not', () => {
    const rules = [inForce({ attempts: { most: 2, withinMs: 60_000 } })];

    expect(callsOf({ rules, invites: [0, 10, 50].map((at) => invite(at)) })).toEqual(['call-50']);
    expect(callsOf({ rules, invites: [0, 10, 61].map((at) => invite(at)) })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(0), invite(1, { gateway: 2 }), invite(10)] })).toEqual(
      [],
    );
  });

  test('too soon after an answer that some process knew', () => {
    const rules = [inForce({ afterAnsweredMs: 60_000 })];
    const answered = invite(0, { answeredAt: noon, isAnswerStored: true });

    expect(callsOf({ rules, invites: [answered, invite(30)] })).toEqual(['call-30']);
    expect(callsOf({ rules, invites: [answered, invite(61)] })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(0, { answeredAt: noon }), invite(30)] })).toEqual([]);
  });

  test('only if no version that may have been in force permits it', () => {
    const rules = [
      inForce({ attempts: { most: 1, withinMs: 60_000 } }, -60, 20),
      inForce({ attempts: { most: 5, withinMs: 60_000 } }, 18),
    ];

    expect(callsOf({ rules, invites: [invite(0), invite(10)] })).toEqual(['call-10']);
    expect(callsOf({ rules, invites: [invite(0), invite(19)] })).toEqual([]);
    expect(callsOf({ rules, invites: [invite(0), invite(30)] })).toEqual([]);
  });
});
