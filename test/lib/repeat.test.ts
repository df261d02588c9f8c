import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { type RepetitionOptions, repeat } from '../../src/lib/repeat.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Runs at each whole second (`src/lib/beat.ts`). Each run returns what `next` returns. */
function repeated(options: Partial<RepetitionOptions> = {}) {
  const world = { runs: 0, next: async (): Promise<unknown> => true };
  const repetition = repeat(
    { name: 'test', everyMs: 1_000, logger: silentLogger, ...options },
    () => {
      world.runs += 1;
      return world.next();
    },
  );
  return { world, repetition };
}

test('a failure only delays the next run', async () => {
  const { world, repetition } = repeated();
  world.next = () => Promise.reject(new Error('away'));

  await vi.advanceTimersByTimeAsync(2_500);

  expect(world.runs).toBe(2);
  await repetition.stop();
});

test('a run waits for the previous one, and stop waits for the present one', async () => {
  const { world, repetition } = repeated();
  let finish = (): void => undefined;
  world.next = () =>
    new Promise<void>((resolve) => {
      finish = resolve;
    });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(world.runs).toBe(1);

  let hasStopped = false;
  const stopped = repetition.stop().then(() => {
    hasStopped = true;
  });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(hasStopped).toBe(false);
  finish();
  await stopped;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(world.runs).toBe(1);
});

test('a run that found nothing is followed by a rest of bounded length', async () => {
  const { world, repetition } = repeated({ maxRestMs: 30_000 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(world.runs).toBe(2);

  // The next run is the one at 3 s, and the rest ends at 30 s.
  world.next = async () => false;
  await vi.advanceTimersByTimeAsync(27_999);
  expect(world.runs).toBe(3);
  await vi.advanceTimersByTimeAsync(1);
  expect(world.runs).toBe(4);
  await repetition.stop();
});

test('a wake ends a rest', async () => {
  const { world, repetition } = repeated({ maxRestMs: 30_000 });
  world.next = async () => false;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(world.runs).toBe(1);

  repetition.wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(world.runs).toBe(2);
  await repetition.stop();
  repetition.wake();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(world.runs).toBe(2);
});

test('no rest follows a run that was woken meanwhile, or a run that failed', async () => {
  const { world, repetition } = repeated({ maxRestMs: 30_000 });
  world.next = async () => {
    repetition.wake();
    return false;
  };
  await vi.advanceTimersByTimeAsync(2_000);
  expect(world.runs).toBe(2);

  world.next = () => Promise.reject(new Error('away'));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(world.runs).toBe(4);
  await repetition.stop();
});

test('without a longest rest, runs that find nothing go on', async () => {
  const { world, repetition } = repeated({ maxRestMs: 0 });
  world.next = async () => false;

  await vi.advanceTimersByTimeAsync(3_000);

  expect(world.runs).toBe(3);
  await repetition.stop();
});
