// `undisturbed` retries failures only if the gateway stood still.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from './support/eventually.ts';
import { undisturbed } from './support/undisturbed.ts';

const quick = { sampleEveryMs: 1 };
/** The shortest standstill that counts is 400 ms, i.e. this many 20 ms ticks. */
const standstillTicks = 20;

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Returns a counter of attempts and an attempt that always fails with its own number. */
function failing(during: (attempt: number) => void | Promise<void>) {
  let attempts = 0;
  const attempt = async (): Promise<never> => {
    attempts += 1;
    const which = attempts;
    await during(which);
    throw new Error(`attempt ${which}`);
  };
  return { attempt, count: () => attempts };
}

describe('an attempt that fails', () => {
  test('is logged and retried if the gateway stood still', async () => {
    let ticks = 7;
    let attempts = 0;
    const value = await undisturbed(
      async () => ticks,
      async () => {
        attempts += 1;
        if (attempts > 1) return 'heard';
        ticks += standstillTicks;
        throw new Error('not heard');
      },
      quick,
    );

    expect([value, attempts]).toEqual(['heard', 2]);
    expect(console.error).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining('400 ms'),
      new Error('not heard'),
    );
  });

  test('is retried at most twice', async () => {
    let ticks = 0;
    const { attempt, count } = failing(() => {
      ticks += standstillTicks;
    });

    await expect(undisturbed(async () => ticks, attempt, quick)).rejects.toThrow('attempt 3');
    expect(count()).toBe(3);
  });

  test("isn't retried once half of the test's time has passed", async () => {
    let ticks = 0;
    const { attempt } = failing(() => {
      ticks += standstillTicks;
    });
    const options = { ...quick, testTimeoutMs: 0 };

    await expect(undisturbed(async () => ticks, attempt, options)).rejects.toThrow('attempt 1');
  });

  test('is final if the gateway was often late, but never for long', async () => {
    let looks = 0;
    const ticksLate = async () => {
      looks += 1;
      return looks * (standstillTicks - 1);
    };
    const { attempt } = failing(() => eventually(() => looks > 5, 'the ticks are read often'));

    await expect(undisturbed(ticksLate, attempt, quick)).rejects.toThrow('attempt 1');
    expect(console.error).not.toHaveBeenCalled();
  });

  test('is final, with its own error, if the gateway died', async () => {
    let isThere = true;
    const ticksLate = async () => {
      if (!isThere) throw new Error('connection refused');
      return 0;
    };
    const { attempt } = failing(() => {
      isThere = false;
    });

    await expect(undisturbed(ticksLate, attempt, quick)).rejects.toThrow('attempt 1');
  });
});

test('asks a worker again if it does not answer', async () => {
  let after: number[] | undefined;
  const ticksLate = async () => after?.shift() ?? (after === undefined ? 100 : 120);
  const { attempt, count } = failing((which) => {
    if (which === 1) after = [0, 30];
  });

  await expect(undisturbed(ticksLate, attempt, quick)).rejects.toThrow('attempt 2');
  expect(count()).toBe(2);
});

test('rejects a gateway without a metric for late ticks', async () => {
  const noMetric = () => Promise.reject(new Error('no metric of late ticks'));

  await expect(undisturbed(noMetric, async () => 'heard', quick)).rejects.toThrow('no metric');
});
