import { describe, expect, test } from 'vitest';
import { Rest } from '../../src/lib/rest.ts';

describe('sweeps that may rest', () => {
  function sweeps(longestMs: number) {
    const world = { nowMs: 0, left: 0, looks: 0 };
    const rest = new Rest(longestMs, () => world.nowMs);
    const sweep = () =>
      rest.unlessResting(async () => {
        world.looks += 1;
        return world.left > 0;
      });
    return { world, rest, sweep };
  }

  test('go on while there is anything left, and rest when there is not', async () => {
    const { world, sweep } = sweeps(30_000);
    world.left = 1;
    expect([await sweep(), await sweep()]).toEqual([true, true]);
    world.left = 0;
    expect([await sweep(), await sweep(), await sweep()]).toEqual([false, false, false]);
    expect(world.looks).toBe(3);
  });

  test('look again when they are woken, and after the longest rest', async () => {
    const { world, rest, sweep } = sweeps(30_000);
    await sweep();
    rest.wake();
    await sweep();
    expect(world.looks).toBe(2);

    world.nowMs += 29_999;
    await sweep();
    expect(world.looks).toBe(2);
    world.nowMs += 1;
    await sweep();
    expect(world.looks).toBe(3);
  });

  test('do not rest when they were woken during a look, which may have missed it', async () => {
    const { world, rest, sweep } = sweeps(30_000);
    await rest.unlessResting(async () => {
      rest.wake();
      return false;
    });
    await sweep();
    expect(world.looks).toBe(1);
  });

  test('do not rest when a look failed, nor where others write', async () => {
    const { world, rest, sweep } = sweeps(30_000);
    await expect(rest.unlessResting(() => Promise.reject(new Error('away')))).rejects.toThrow(
      'away',
    );
    await sweep();
    expect(world.looks).toBe(1);

    const shared = sweeps(0);
    await shared.sweep();
    await shared.sweep();
    expect(shared.world.looks).toBe(2);
  });
});
