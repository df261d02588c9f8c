// Repeated work begins at common instants.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { onEveryBeat, untilBeat } from '../../src/lib/beat.ts';

const periodsMs = [1, 3, 100, 125, 1_000, 7_500, 30_000];
const instantsMs = [0, 0.4, 7, 60, 64, 999.5, 1_000, 12_345.678, 9_007_199_254];

describe('the pause before the next run', () => {
  const cases = periodsMs.flatMap((everyMs) => instantsMs.map((nowMs) => ({ everyMs, nowMs })));

  test.each(cases)('lasts about $everyMs ms at $nowMs ms', ({ everyMs, nowMs }) => {
    const pauseMs = untilBeat(everyMs, nowMs);

    expect(Number.isInteger(pauseMs)).toBe(true);
    expect(pauseMs).toBeGreaterThanOrEqual(everyMs / 8);
    expect(pauseMs).toBeLessThanOrEqual(everyMs);
  });

  test('ends when that of other work ends', () => {
    const ends = [41_000.2, 41_017, 41_340, 41_800].flatMap((nowMs) =>
      [1_000, 5_000].map((everyMs) => nowMs + untilBeat(everyMs, nowMs)),
    );

    for (const endMs of ends) expect(endMs % 1_000).toBeLessThan(1);
  });
});

describe('work at every beat', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('begins at a whole second, whenever it is set up', async () => {
    await vi.advanceTimersByTimeAsync(300);
    const startedAtMs = performance.now();
    const runsAtMs: number[] = [];
    const stop = onEveryBeat(1_000, () => runsAtMs.push(performance.now()));
    await vi.advanceTimersByTimeAsync(3_000);
    stop();

    expect(startedAtMs % 1_000).toBeCloseTo(300);
    expect(runsAtMs).toHaveLength(3);
    for (const atMs of runsAtMs) expect(atMs % 1_000).toBeLessThan(1);
  });

  test('runs until it is stopped', async () => {
    let runs = 0;
    const stop = onEveryBeat(1_000, () => {
      runs += 1;
    });
    await vi.advanceTimersByTimeAsync(5_100);
    expect(runs).toBe(5);

    stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(runs).toBe(5);
  });
});
