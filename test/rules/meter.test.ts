// The share of abandoned calls by two formulas, and what a campaign near its limit may still dial.

import { describe, expect, test } from 'vitest';
import {
  afterProbe,
  type CampaignCounts,
  falseMachines,
  ftcShare,
  type HoldState,
  judgeHold,
  ofcomShare,
  type ProbeResult,
  spareCalls,
} from '../../src/rules/meter.ts';

const now = new Date('2026-11-24T12:00:00.000Z');
const later = (ms: number) => new Date(now.getTime() + ms);
const rule = { most: 3, allow: 5 };
const counts = (given: Partial<CampaignCounts>): CampaignCounts => ({
  ...{ answeredByPerson: 0, abandoned: 0, decided: 0, inFlight: 0 },
  ...given,
});

describe('the share of abandoned calls', () => {
  test('is that of the people who answered, by the FTC', () => {
    const share = ftcShare({ answeredByPerson: 200, abandoned: 5, connected: 190 });

    expect(share.percent).toBe(2.5);
    // Wilson's bound for 5 of 200.
    expect(share.upper95).toBeCloseTo(5.03, 1);
  });

  test('includes the people taken for machines, by Ofcom, and leaves out those who left', () => {
    const estimate = falseMachines(194, 0.03);

    expect(estimate).toBeCloseTo(6);
    expect(ofcomShare({ answeredByPerson: 194, abandoned: 4, connected: 190 }, estimate)).toEqual(
      expect.objectContaining({ percent: expect.closeTo(5) }),
    );
  });

  test('says nothing before the first person', () => {
    const none = { answeredByPerson: 0, abandoned: 0, connected: 0 };

    expect(ftcShare(none)).toEqual({ percent: 0, upper95: 100 });
  });

  test('has a bound that covers the true share in 95 % of samples', () => {
    const random = seeded(7);
    let covered = 0;
    for (let sample = 0; sample < 2_000; sample += 1) {
      const abandoned = binomial(400, 0.03, random);
      const { upper95 } = ftcShare({ answeredByPerson: 400, abandoned, connected: 0 });
      covered += upper95 >= 3 ? 1 : 0;
    }

    expect(covered / 2_000).toBeGreaterThan(0.94);
  });
});

describe('a campaign', () => {
  test('may dial until it has abandoned more calls than always allowed', () => {
    expect(judgeHold(rule, counts({ abandoned: 5, answeredByPerson: 5 }), {}, now).kind).toBe(
      'permitted',
    );
    expect(judgeHold(rule, counts({ abandoned: 6, answeredByPerson: 6 }), {}, now)).toEqual({
      kind: 'wait',
      hold: { heldSince: now, heldUntil: later(30_000), pauseMs: 30_000 },
    });
  });

  test('is not held by calls in flight before it has abandoned too many', () => {
    const strict = { most: 3, allow: 0 };

    expect(judgeHold(strict, counts({ inFlight: 500 }), {}, now).kind).toBe('permitted');
    expect(judgeHold(strict, counts({ abandoned: 1, decided: 1 }), {}, now).kind).toBe('wait');
  });

  test('counts its calls in flight as abandoned, in proportion to its share of people', () => {
    const steady = { answeredByPerson: 3_000, abandoned: 30, decided: 10_000 };
    const spare = spareCalls(rule, counts(steady), 10_000);

    // 3 % of 3,000 are 90. 30 are gone and 7 reserved, so some 53 more people may be in flight.
    expect(spare).toBeGreaterThan(100);
    expect(spare).toBeLessThan(180);
    expect(spareCalls(rule, counts({ ...steady, inFlight: spare }), 10)).toBe(0);
  });

  test('close to its limit dials one call at a time, and pauses after an abandoned one', () => {
    const close = counts({ answeredByPerson: 300, abandoned: 8, decided: 1_000 });
    const paused = afterProbe({}, 'abandoned', now);

    expect(judgeHold(rule, close, {}, now).kind).toBe('probe');
    expect(judgeHold(rule, { ...close, inFlight: 1 }, {}, now).kind).toBe('wait');
    expect(judgeHold(rule, close, paused, later(59_999)).kind).toBe('wait');
    expect(judgeHold(rule, close, paused, later(60_000)).kind).toBe('probe');
  });

  test('that waits lets one probe through after its pause, once nothing is in flight', () => {
    const over = { answeredByPerson: 100, abandoned: 20, decided: 100 };
    const held: HoldState = { heldSince: now, heldUntil: later(30_000), pauseMs: 30_000 };

    expect(judgeHold(rule, counts(over), held, later(29_999)).kind).toBe('wait');
    expect(judgeHold(rule, counts({ ...over, inFlight: 1 }), held, later(30_000)).kind).toBe(
      'wait',
    );
    expect(judgeHold(rule, counts(over), held, later(30_000)).kind).toBe('probe');
  });

  test('doubles its pause with each abandoned probe, up to 15 minutes', () => {
    let state: HoldState = { heldSince: now, heldUntil: now, pauseMs: 30_000 };
    const pauses: (number | undefined)[] = [];
    for (let probe = 0; probe < 7; probe += 1) {
      state = afterProbe(state, 'abandoned', now);
      pauses.push(state.pauseMs);
    }

    expect(pauses).toEqual([60_000, 120_000, 240_000, 480_000, 900_000, 900_000, 900_000]);
    expect(state.heldUntil).toEqual(later(900_000));
    expect(afterProbe(state, 'other', now)).toMatchObject({ heldUntil: now, pauseMs: 900_000 });
    expect(afterProbe(state, 'connected', now)).toMatchObject({ heldUntil: now, pauseMs: 30_000 });
  });

  test('stays under its limit through a break of its bot, once people have answered it', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const run = simulate(seed);
      expect(run.abandoned / run.answeredByPerson, `seed ${seed}`).toBeLessThan(0.03);
    }
  });
});

const tallyAtStart = { answeredByPerson: 2_000, abandoned: 20, decided: 6_667 };
type Flying = { readonly overAtS: number; readonly isProbe: boolean };

/**
 * Plays an hour of a campaign that begins with 2,000 people and dials 5 calls a second. Three in
 * ten calls reach a person, and one in a hundred of them is abandoned. The bot breaks at minute
 * five, for 20 minutes.
 */
function simulate(seed: number) {
  const random = seeded(seed);
  const tally = { ...tallyAtStart };
  let inFlight: Flying[] = [];
  let state: HoldState = {};
  const decide = ({ isProbe }: Flying, second: number) => {
    const isBroken = second >= 300 && second < 1_500;
    const isPerson = random() < 0.3;
    const result = reached(isPerson, random() < (isBroken ? 1 : 0.01));
    tally.decided += 1;
    tally.answeredByPerson += Number(isPerson);
    tally.abandoned += Number(result === 'abandoned');
    if (isProbe) state = afterProbe(state, result, later(second * 1_000));
  };
  const dial = (second: number) => {
    const all = { ...tally, inFlight: inFlight.length };
    const verdict = judgeHold(rule, all, state, later(second * 1_000));
    if (verdict.kind === 'wait') state = verdict.hold;
    else inFlight.push({ overAtS: second + 5 + random() * 20, isProbe: verdict.kind === 'probe' });
  };
  for (let second = 0; second < 3_600; second += 1) {
    for (const one of inFlight.filter(({ overAtS }) => overAtS <= second)) decide(one, second);
    inFlight = inFlight.filter(({ overAtS }) => overAtS > second);
    for (let call = 0; call < 5; call += 1) dial(second);
  }
  return tally;
}

function reached(isPerson: boolean, isAlone: boolean): ProbeResult {
  if (!isPerson) return 'other';
  return isAlone ? 'abandoned' : 'connected';
}

function binomial(count: number, share: number, random: () => number): number {
  let hits = 0;
  for (let index = 0; index < count; index += 1) hits += random() < share ? 1 : 0;
  return hits;
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
