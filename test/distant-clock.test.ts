import { expect, test } from 'vitest';
import { DistantClock } from '../src/lib/distant-clock.ts';

const aheadMs = 5_000;

/** An answer that was on its way for so long, its clock read at the end of it. */
const late = (askedAtMs: number, byMs: number, ahead = aheadMs) => ({
  askedAtMs,
  answeredAtMs: askedAtMs + byMs,
  clockMs: askedAtMs + byMs + ahead,
});

test('a distant clock is known by the quickest answer', () => {
  const clock = new DistantClock();
  clock.learn(late(0, 400));
  clock.learn(late(1_000, 0));
  clock.learn(late(2_000, 300));

  expect(clock.hereMs(10_000)).toBe(5_000);
});

test('a distant clock that was set is followed within seconds', () => {
  const clock = new DistantClock();
  clock.learn(late(0, 4));
  clock.learn(late(3_000, 6, 9_000));

  expect(clock.hereMs(10_000)).toBe(997);
});

test('a distant clock of which nothing was heard says nothing', () => {
  expect(() => new DistantClock().hereMs(1)).toThrow('nothing is known');
});
