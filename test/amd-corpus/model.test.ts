// The two small models learn from numbers that carry information, and learn nothing from numbers
// that carry none.

import { describe, expect, test } from 'vitest';
import { seededRandom } from '../amd/made-up-audio.ts';
import { boostedStumps, type Example, logistic } from './model/models.ts';

/**
 * `signal`: the distance between people and machines, in standard deviations of the first feature.
 * The second feature carries no information.
 */
function made(signal: number, seed: number, count = 300): Example[] {
  const random = seededRandom(seed);
  const noise = () => random() + random() + random() - 1.5;
  return Array.from({ length: count }, (_, index) => {
    const isMachine = index % 2 === 0;
    return { isMachine, features: [noise() + (isMachine ? signal : 0), 5 * noise()] };
  });
}

describe.each([
  ['logistic regression', logistic],
  ['boosted stumps', boostedStumps],
] as const)('%s', (_, train) => {
  const right = (learnt: readonly Example[], measured: readonly Example[]): number => {
    const model = train(learnt);
    const hits = measured.filter(({ features, isMachine }) => model(features) > 0.5 === isMachine);
    return hits.length / measured.length;
  };

  test('separates groups that differ', () => {
    expect(right(made(2, 1), made(2, 2))).toBeGreaterThan(0.9);
  });

  test('does not separate groups that do not differ', () => {
    const share = right(made(0, 1), made(0, 2));

    expect(share).toBeGreaterThan(0.35);
    expect(share).toBeLessThan(0.65);
  });

  test('returns probabilities', () => {
    const model = train(made(1, 3));
    for (const { features } of made(1, 4)) {
      expect(model(features)).toBeGreaterThan(0);
      expect(model(features)).toBeLessThan(1);
    }
  });
});
