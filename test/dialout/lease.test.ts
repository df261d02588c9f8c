// What the lease of a process permits, on a clock of the test.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { leaseTimes } from '../../src/lib/lease-times.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Lease } from '../../src/recovery/lease.ts';

const leaseMs = 8_000;
const times = leaseTimes(leaseMs);
const { grantedMs, renewEveryMs, retryEveryMs } = times;
/** While the database can't be reached, a lease runs out within this time. */
const untilExpiredMs = grantedMs + 1;

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
    expect(world.renewals).toBe(80);
    lease.stop();
  });

  test('is not held while the database is unreachable for longer than it was granted, and is held again afterwards', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(untilExpiredMs);
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

  test('survives every outage of the stated length, even if an attempt hangs when the database is back', async () => {
    const { lease, world } = rig();
    for (let phaseMs = 0; phaseMs < renewEveryMs; phaseMs += 125) {
      await vi.advanceTimersByTimeAsync(leaseMs + phaseMs);
      world.hangs = true;
      await vi.advanceTimersByTimeAsync(leaseMs);
      expect(lease.isHeld).toBe(true);
      world.hangs = false;
      for (let ms = 0; ms < leaseMs; ms += 50) {
        await vi.advanceTimersByTimeAsync(50);
        expect(lease.isHeld).toBe(true);
      }
    }
    expect(world.hanging.length).toBeGreaterThan(0);
    lease.stop();
  });

  test('reports with a renewal whether the previous one failed', async () => {
    const { lease, world } = rig();
    await vi.advanceTimersByTimeAsync(renewEveryMs);
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(renewEveryMs);
    world.answer = true;
    await vi.advanceTimersByTimeAsync(retryEveryMs + renewEveryMs);

    expect(world.afterFailure).toEqual([false, false, true, false]);
    lease.stop();
  });

  test('is renewed by the next attempt if one hangs, and a late answer does not shorten it', async () => {
    const { lease, world } = rig();
    world.hangs = true;
    await vi.advanceTimersByTimeAsync(renewEveryMs);
    world.hangs = false;
    await vi.advanceTimersByTimeAsync(grantedMs);
    expect(world.afterFailure.slice(0, 3)).toEqual([false, true, false]);
    expect(lease.isHeld).toBe(true);

    for (const answer of world.hanging) answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(lease.isHeld).toBe(true);
    lease.stop();
  });

  test('is renewed more often while the database is unreachable, and is held soon after it is back', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(grantedMs - 1);
    world.answer = true;
    await vi.advanceTimersByTimeAsync(retryEveryMs);
    expect(lease.isHeld).toBe(true);

    // From then on it is renewed as before.
    const { renewals } = world;
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(world.renewals).toBe(renewals + 8);
    lease.stop();
  });

  test('permits running work until it expires, and takes no call whose INVITE could not leave before', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(grantedMs - leaseMs / 8 - 1);
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
    vi.spyOn(performance, 'now').mockReturnValue(now + untilExpiredMs);

    expect(lease.isHeld).toBe(false);
    await lease.renewNow();
    expect(lease.isHeld).toBe(true);
    expect(world.renewals).toBe(1);
    lease.stop();
  });

  test('stays lost: it rejects its waiters, and notifies the process once', async () => {
    const { lease, world } = rig();
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(untilExpiredMs);
    const waiting = lease.untilHeld();
    const rejected = expect(waiting).rejects.toThrow('another node ends the calls');
    world.answer = false;
    await vi.advanceTimersByTimeAsync(leaseMs);
    await rejected;

    world.answer = true;
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(lease.isHeld).toBe(false);
    await expect(lease.untilHeld()).rejects.toThrow('lost');
    expect(world.lost).toBe(1);
  });

  test('can be given up once it has expired, and then stays lost', async () => {
    const { lease, world } = rig();
    expect(lease.yield()).toBe(false);
    world.answer = new Error('the database is unreachable');
    await vi.advanceTimersByTimeAsync(untilExpiredMs);
    const waiting = expect(lease.untilHeld()).rejects.toThrow('another node ends the calls');
    expect(lease.yield()).toBe(true);
    await waiting;

    world.answer = true;
    await vi.advanceTimersByTimeAsync(leaseMs);
    expect(lease.isHeld).toBe(false);
    expect(lease.yield()).toBe(true);
    expect(world.lost).toBe(1);
  });
});
