// What the lease of a process permits, on a clock of the test.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { Lease } from '../../src/recovery/lease.ts';

const leaseMs = 8_000;

function rig() {
  const world = {
    answer: true as boolean | Error,
    hanging: [] as (() => void)[],
    hangs: false,
    renewals: 0,
    afterFailure: [] as boolean[],
    lost: 0,
  };
  const lease = new Lease(
    {
      renew: async ({ afterFailure }) => {
        world.renewals += 1;
        world.afterFailure.push(afterFailure);
        if (world.hangs) await new Promise<void>((resolve) => world.hanging.push(resolve));
        if (world.answer instanceof Error) throw world.answer;
        return world.answer;
      },
      nowMs: () => performance.now(),
      onLost: () => {
        world.lost += 1;
      },
      logger: silentLogger,
    },
    leaseMs,
  );
  lease.start(performance.now());
  return { lease, world };
}

describe('the lease of a process', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('is renewed several times before it expires', async () => {
    const { lease, world } = rig();
    await vi.advanceTimersByTimeAsync(leaseMs * 10);

    expect(lease.isHeld).toBe(true);
    expect(lease.untilHeld()).toBeUndefined();
    expect(world.renewals).toBe(40);
    lease.stop();
  });

  test('is not held while the database is unreachable for longer than a lease, and is held again afterwards', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(leaseMs + 1);
    expect(lease.isHeld).toBe(false);
    let stated = false;
    void lease.untilHeld()?.then(() => {
      stated = true;
    });

    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(stated).toBe(false);
    world.answer = true;
    await vi.advanceTimersByTimeAsync(leaseMs);

    expect(stated).toBe(true);
    expect(world.lost).toBe(0);
    lease.stop();
  });

  test('reports with a renewal whether the previous one failed', async () => {
    const { lease, world } = rig();
    await vi.advanceTimersByTimeAsync(leaseMs / 4);
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(leaseMs / 4);
    world.answer = true;
    await vi.advanceTimersByTimeAsync(leaseMs / 2);

    expect(world.afterFailure).toEqual([false, false, true, false]);
    lease.stop();
  });

  test('is renewed by the next attempt if one hangs, and a late answer does not shorten it', async () => {
    const { lease, world } = rig();
    world.hangs = true;
    await vi.advanceTimersByTimeAsync(leaseMs / 4);
    world.hangs = false;
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(lease.isHeld).toBe(true);

    for (const answer of world.hanging) answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(lease.isHeld).toBe(true);
    lease.stop();
  });

  test('is renewed more often while the database is unreachable, and is held soon after it is back', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(leaseMs - 1);
    world.answer = true;
    await vi.advanceTimersByTimeAsync(leaseMs / 16);
    expect(lease.isHeld).toBe(true);

    // From then on it is renewed as before.
    const { renewals } = world;
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(world.renewals).toBe(renewals + 4);
    lease.stop();
  });

  test('permits running work until it expires, and takes no call whose INVITE could not leave before', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync((leaseMs / 8) * 7 - 1);
    expect(lease.mayTake).toBe(true);

    await vi.advanceTimersByTimeAsync(1);
    expect(lease.mayTake).toBe(false);
    expect(lease.isHeld).toBe(true);

    world.answer = true;
    await lease.renewNow();
    expect(lease.mayTake).toBe(true);
    lease.stop();
  });

  test('is not held by a process that wakes up late, until the database confirms it', async () => {
    const { lease, world } = rig();
    // Stopped by a signal: the clock goes on, but timers do not.
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + leaseMs + 1);

    expect(lease.isHeld).toBe(false);
    await lease.renewNow();
    expect(lease.isHeld).toBe(true);
    expect(world.renewals).toBe(1);
    lease.stop();
  });

  test('stays lost: it rejects its waiters, and notifies the process once', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(leaseMs + 1);
    const waiting = lease.untilHeld();
    const rejected = expect(waiting).rejects.toThrow('another node ended the calls');
    world.answer = false;
    await vi.advanceTimersByTimeAsync(leaseMs);
    await rejected;

    world.answer = true;
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(lease.isHeld).toBe(false);
    await expect(lease.untilHeld()).rejects.toThrow('lost');
    expect(world.lost).toBe(1);
  });
});
