// Which failures `undisturbed` retries because the gateway stood still, and which ones it does not.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from './support/eventually.ts';
import { undisturbed } from './support/undisturbed.ts';

const quick = { sampleEveryMs: 1 };
/** The 20 ms ticks of 400 ms, the shortest standstill that counts. */
const standstillTicks = 20;

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Returns an attempt that always fails with its number, and a count of the attempts. */
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
  test('is repeated and logged if the gateway stood still', async () => {
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

  test('is made at most three times', async () => {
    let ticks = 0;
    const { attempt, count } = failing(() => {
      ticks += standstillTicks;
    });

    await expect(undisturbed(async () => ticks, attempt, quick)).rejects.toThrow('attempt 3');
    expect(count()).toBe(3);
  });

  test('is not repeated after half of the time of the test', async () => {
    let ticks = 0;
    const { attempt } = failing(() => {
      ticks += standstillTicks;
    });
    const options = { ...quick, testTimeoutMs: 0 };

    await expect(undisturbed(async () => ticks, attempt, options)).rejects.toThrow('attempt 1');
  });

  test('is final if the gateway was late often but never for long', async () => {
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

test('rejects a gateway that has no metric of late ticks', async () => {
  const noMetric = () => Promise.reject(new Error('no metric of late ticks'));

  await expect(undisturbed(noMetric, async () => 'heard', quick)).rejects.toThrow('no metric');
});
