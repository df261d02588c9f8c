// The steps of a shutdown: their order, and the time limit of all steps together, whatever each of
// them does.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type ShutdownParts, shutDown, shutdownLimitMs } from '../../src/app/shutdown.ts';
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

/** A shutdown whose steps never end by themselves. `done` lists the steps with their start in s. */
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
  const ending: ShutdownParts = {
    node: { drain: () => begin('store draining') },
    calls: {
      drain: async (drainMs, force) => {
        done.push(['drain', Math.round(seconds() * 10) / 10]);
        await new Promise<void>((resolve) => {
          setTimeout(resolve, drainMs);
          force.addEventListener('abort', () => resolve());
        });
        // The time for hanging up.
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      },
      settle: () => begin('settle'),
    },
    closers,
  };
  return { ending, done };
}

async function ended(ending: ShutdownParts, options: Parameters<typeof shutDown>[1]) {
  const startedAt = seconds();
  let left: readonly string[] | undefined;
  void shutDown(ending, options).then((names) => {
    left = names;
  });
  while (left === undefined) await vi.advanceTimersByTimeAsync(10);
  return { left, tookS: seconds() - startedAt };
}

test('ends in time although no step ends by itself, and names the parts that have not closed', async () => {
  const { ending, done } = endlessWorld();
  const { left, tookS } = await ended(ending, {
    ...{ delayMs: 2_000, drainMs: 10_000, force: new AbortController().signal },
  });

  expect(left).toEqual(['HTTP', 'calls', 'nats-server', 'database', 'data folder']);
  expect(tookS).toBeLessThan(shutdownLimitMs({ delayMs: 2_000, drainMs: 10_000 }) / 1_000);
  expect(shutdownLimitMs({ delayMs: 2_000, drainMs: 10_000 })).toBeLessThan(17_000);
  // The database closes after the other parts, because they store in it. The data folder stays
  // locked.
  expect(done.map(([step]) => step)).toEqual([
    ...['store draining', 'drain', 'settle', 'HTTP', 'calls', 'nats-server', 'database'],
  ]);
});

test('ends within the closing time if its calls get no time', async () => {
  const { ending } = endlessWorld();
  const { tookS } = await ended(ending, { drainMs: 0 });

  expect(tookS).toBeLessThan(shutdownLimitMs() / 1_000);
});

test('a second signal ends delay and drain, and the other steps keep their time limit', async () => {
  const { ending } = endlessWorld();
  const force = new AbortController();
  setTimeout(() => force.abort(), 3_000);
  const { tookS } = await ended(ending, {
    ...{ delayMs: 60_000, drainMs: 3_600_000, force: force.signal },
  });

  expect(tookS).toBeLessThan(3 + shutdownLimitMs() / 1_000);
});

test('ends with its last call', async () => {
  const closers = new Closers(silentLogger);
  const ending: ShutdownParts = {
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

test('limits the bound of a drain of weeks to the longest timer, which does not fire at once', () => {
  expect(shutdownLimitMs({ delayMs: 2 ** 31 - 1, drainMs: 2 ** 31 - 1 })).toBe(2 ** 31 - 1);
});
