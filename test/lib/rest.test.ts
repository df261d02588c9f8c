import { describe, expect, test } from 'vitest';
import { Rest } from '../../src/lib/rest.ts';

describe('rounds that may rest', () => {
  function rounds(longestMs: number) {
    const world = { nowMs: 0, left: 0, looks: 0 };
    const rest = new Rest(longestMs, () => world.nowMs);
    const round = () =>
      rest.round(async () => {
        world.looks += 1;
        return world.left > 0;
      });
    return { world, rest, round };
  }

  test('go on while there is anything left, and rest when there is not', async () => {
    const { world, round } = rounds(30_000);
    world.left = 1;
    expect([await round(), await round()]).toEqual([true, true]);
    world.left = 0;
    expect([await round(), await round(), await round()]).toEqual([false, false, false]);
    expect(world.looks).toBe(3);
  });

  test('look again when they are woken, and after the longest rest', async () => {
    const { world, rest, round } = rounds(30_000);
    await round();
    rest.wake();
    await round();
    expect(world.looks).toBe(2);

    world.nowMs += 29_999;
    await round();
    expect(world.looks).toBe(2);
    world.nowMs += 1;
    await round();
    expect(world.looks).toBe(3);
  });

  test('do not rest when they were woken during a look, which may have missed it', async () => {
    const { world, rest, round } = rounds(30_000);
    await rest.round(async () => {
      rest.wake();
      return false;
    });
    await round();
    expect(world.looks).toBe(1);
  });

  test('do not rest when a look failed, nor where others write', async () => {
    const { world, rest, round } = rounds(30_000);
    await expect(rest.round(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
    await round();
    expect(world.looks).toBe(1);

    const shared = rounds(0);
    await shared.round();
    await shared.round();
    expect(shared.world.looks).toBe(2);
  });
});
