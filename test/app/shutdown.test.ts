// The steps of a shutdown: their order, and that their sum has a bound whatever each of them does.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Ending, lastBoundMs, shutDown } from '../../src/app/shutdown.ts';
import { Closers } from '../../src/lib/closers.ts';
import { silentLogger } from '../../src/lib/logger.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const never = () => new Promise<never>(() => undefined);
const seconds = () => performance.now() / 1_000;

/** Each step takes as long as it may, and more. `done`: the steps with the second of their begin. */
function endlessWorld() {
  const done: [string, number][] = [];
  const begin = (step: string): Promise<never> => {
    done.push([step, Math.round(seconds() * 10) / 10]);
    return never();
  };
  const closers = new Closers(silentLogger);
  for (const name of ['data folder', 'database', 'nats-server', 'calls', 'HTTP']) {
    const reservedMs = { database: 1_000, 'nats-server': 500 }[name];
    closers.add(name, () => begin(name), {
      ...(reservedMs === undefined ? {} : { reservedMs }),
      isLast: name === 'data folder',
    });
  }
  const ending: Ending = {
    node: { drain: () => begin('tell others') },
    calls: {
      drain: async (drainMs, force) => {
        done.push(['drain', Math.round(seconds() * 10) / 10]);
        await new Promise<void>((resolve) => {
          setTimeout(resolve, drainMs);
          force.addEventListener('abort', () => resolve());
        });
        // Hanging up.
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      },
      settle: () => begin('settle'),
    },
    closers,
  };
  return { ending, done };
}

async function ended(ending: Ending, options: Parameters<typeof shutDown>[1]) {
  const startedAt = seconds();
  let left: readonly string[] | undefined;
  void shutDown(ending, options).then((names) => {
    left = names;
  });
  while (left === undefined) await vi.advanceTimersByTimeAsync(10);
  return { left, tookS: seconds() - startedAt };
}

test('ends in time, although no step ends by itself, and names what has not closed', async () => {
  const { ending, done } = endlessWorld();
  const { left, tookS } = await ended(ending, {
    ...{ delayMs: 2_000, drainMs: 10_000, force: new AbortController().signal },
  });

  expect(left).toEqual(['HTTP', 'calls', 'nats-server', 'database', 'data folder']);
  expect(tookS).toBeLessThan(lastBoundMs({ delayMs: 2_000, drainMs: 10_000 }) / 1_000);
  expect(lastBoundMs({ delayMs: 2_000, drainMs: 10_000 })).toBeLessThan(17_000);
  // The database after the others: it is what they store in. The data folder stays locked.
  expect(done.map(([step]) => step)).toEqual([
    ...['tell others', 'drain', 'settle', 'HTTP', 'calls', 'nats-server', 'database'],
  ]);
});

test('without time for its calls it ends as soon', async () => {
  const { ending } = endlessWorld();
  const { tookS } = await ended(ending, { drainMs: 0 });

  expect(tookS).toBeLessThan(lastBoundMs() / 1_000);
});

test('a second signal ends delay and drain, and the rest has the same bound', async () => {
  const { ending } = endlessWorld();
  const force = new AbortController();
  setTimeout(() => force.abort(), 3_000);
  const { tookS } = await ended(ending, {
    ...{ delayMs: 60_000, drainMs: 3_600_000, force: force.signal },
  });

  expect(tookS).toBeLessThan(3 + lastBoundMs() / 1_000);
});

test('is over with the last call', async () => {
  const closers = new Closers(silentLogger);
  const ending: Ending = {
    node: { drain: async () => undefined },
    calls: {
      drain: () => new Promise((resolve) => setTimeout(resolve, 4_000)),
      settle: async () => undefined,
    },
    closers,
  };
  const { left, tookS } = await ended(ending, {
    ...{ drainMs: 60_000, force: new AbortController().signal },
  });

  expect(left).toEqual([]);
  expect(Math.round(tookS)).toBe(4);
});

test('a drain of weeks is not ended by the bound at once', () => {
  expect(lastBoundMs({ delayMs: 2 ** 31 - 1, drainMs: 2 ** 31 - 1 })).toBe(2 ** 31 - 1);
});
