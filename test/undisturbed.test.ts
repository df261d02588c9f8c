// What is forgiven to a test whose gateway stood still, and what is not.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from './support/eventually.ts';
import { undisturbed } from './support/undisturbed.ts';

const quick = { lookEveryMs: 1 };
/** 400 ms. */
const standstillTicks = 20;

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Each attempt fails, with its number. */
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
  test('is made again where the gateway stood still, and that is told', async () => {
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

  test('is made three times at most', async () => {
    let ticks = 0;
    const { attempt, count } = failing(() => {
      ticks += standstillTicks;
    });

    await expect(undisturbed(async () => ticks, attempt, quick)).rejects.toThrow('attempt 3');
    expect(count()).toBe(3);
  });

  test('is not made again once half of the time of the test is over', async () => {
    let ticks = 0;
    const { attempt } = failing(() => {
      ticks += standstillTicks;
    });
    const options = { ...quick, testTimeoutMs: 0 };

    await expect(undisturbed(async () => ticks, attempt, options)).rejects.toThrow('attempt 1');
  });

  test('has failed where the gateway was late often, and never for long', async () => {
    let looks = 0;
    const ticksLate = async () => {
      looks += 1;
      return looks * (standstillTicks - 1);
    };
    const { attempt } = failing(() => eventually(() => looks > 5, 'it is looked often'));

    await expect(undisturbed(ticksLate, attempt, quick)).rejects.toThrow('attempt 1');
    expect(console.error).not.toHaveBeenCalled();
  });

  test('has failed with its own error where the gateway died', async () => {
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

test('a worker that does not answer is asked again', async () => {
  let after: number[] | undefined;
  const ticksLate = async () => after?.shift() ?? (after === undefined ? 100 : 120);
  const { attempt, count } = failing((which) => {
    if (which === 1) after = [0, 30];
  });

  await expect(undisturbed(ticksLate, attempt, quick)).rejects.toThrow('attempt 2');
  expect(count()).toBe(2);
});

test('a gateway without the metric is no gateway to be judged by', async () => {
  const noMetric = () => Promise.reject(new Error('no metric of late ticks'));

  await expect(undisturbed(noMetric, async () => 'heard', quick)).rejects.toThrow('no metric');
});
