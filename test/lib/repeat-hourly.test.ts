import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { repeatHourly } from '../../src/lib/repeat-hourly.ts';

const [minuteMs, hourMs] = [60_000, 3_600_000];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function hourly() {
  const world = { runs: 0, shiftMs: 0, fails: false };
  const clock = { now: () => new Date(Date.now() + world.shiftMs) };
  const repetition = repeatHourly({ name: 'test', clock, logger: silentLogger }, async () => {
    world.runs += 1;
    if (world.fails) throw new Error('the database is away');
  });
  return { world, repetition };
}

test('runs within a minute of the start, and then once an hour', async () => {
  const { world, repetition } = hourly();
  await vi.advanceTimersByTimeAsync(minuteMs);
  expect(world.runs).toBe(1);

  await vi.advanceTimersByTimeAsync(10 * hourMs);
  expect(world.runs).toBe(11);
  await repetition.stop();
});

test('runs soon after a machine has slept for hours, or its clock was set back', async () => {
  const { world, repetition } = hourly();
  await vi.advanceTimersByTimeAsync(minuteMs);
  world.shiftMs = 8 * hourMs;
  await vi.advanceTimersByTimeAsync(minuteMs);
  expect(world.runs).toBe(2);

  world.shiftMs = -8 * hourMs;
  await vi.advanceTimersByTimeAsync(minuteMs);
  expect(world.runs).toBe(3);
  await repetition.stop();
});

test('a failed run is tried again within a minute', async () => {
  const { world, repetition } = hourly();
  world.fails = true;
  await vi.advanceTimersByTimeAsync(2 * minuteMs);
  world.fails = false;
  const { runs } = world;
  expect(runs).toBeGreaterThan(1);
  await vi.advanceTimersByTimeAsync(10 * minuteMs);

  expect(world.runs).toBe(runs + 1);
  await repetition.stop();
});
