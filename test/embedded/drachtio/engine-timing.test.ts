// The engine's clock: long timers end together, so that its thread wakes once for all of them.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/embedded/drachtio/transaction/engine-timing.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Sets timers of the same length, one every `spacingMs`. Returns when each of them fires. */
async function fireTimes(delayMs: number, spacingMs: number): Promise<readonly number[]> {
  const startedAt = systemClock.now();
  const firedAfter: number[] = [];
  for (let timer = 0; timer < 3; timer += 1) {
    systemClock.setTimer(() => firedAfter.push(systemClock.now() - startedAt), delayMs);
    await vi.advanceTimersByTimeAsync(spacingMs);
  }
  await vi.advanceTimersByTimeAsync(2 * delayMs);
  return firedAfter;
}

test('timers that end a transaction fire together, and never early', async () => {
  const [first = 0, ...others] = await fireTimes(32_000, 100);

  // The timers may lie on both sides of a whole second.
  for (const other of others) expect([0, 1_000]).toContain(Math.round(other - first));
  expect(first).toBeGreaterThanOrEqual(32_000);
  expect(first).toBeLessThanOrEqual(33_001);
});

test('timers of retransmissions are exact', async () => {
  const fired = await fireTimes(500, 100);

  expect(fired.map(Math.round)).toEqual([500, 600, 700]);
});

test('a timer that is cleared does not fire', async () => {
  let hasFired = false;
  const timer = systemClock.setTimer(() => {
    hasFired = true;
  }, 32_000);
  systemClock.clearTimer(timer);
  await vi.advanceTimersByTimeAsync(40_000);

  expect(hasFired).toBe(false);
});
