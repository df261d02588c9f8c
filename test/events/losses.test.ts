import { describe, expect, test } from 'vitest';
import { type Compared, Losses } from '../../src/events/losses.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 10, 24, 12, minute));

/** Returns a repair that finds these results, and a record of its runs. */
function repairs(...results: readonly (Compared | Error)[]) {
  const left = [...results];
  const runs: { readonly since: Date; readonly isOwnDone: boolean }[] = [];
  const repair = async (since: Date, isOwnDone: boolean): Promise<Compared> => {
    runs.push({ since, isOwnDone });
    const result = left.shift();
    if (result === undefined || result instanceof Error) throw result ?? new Error('one too many');
    return result;
  };
  return { repair, runs };
}

describe('losses', () => {
  test('are repaired once, since the earliest of them', async () => {
    const losses = new Losses();
    const { repair, runs } = repairs('all');
    await losses.repair(repair);
    losses.note(at(10));
    losses.note(at(5));
    losses.note(at(20));

    await losses.repair(repair);
    await losses.repair(repair);

    expect(runs).toEqual([{ since: at(5), isOwnDone: false }]);
  });

  test('stay until a repair succeeds', async () => {
    const losses = new Losses();
    const { repair, runs } = repairs(new Error('NATS is away'), 'all');
    losses.note(at(5));

    await expect(losses.repair(repair)).rejects.toThrow('NATS is away');
    await losses.repair(repair);
    await losses.repair(repair);

    expect(runs).toHaveLength(2);
  });

  test('stay while another node repairs them, because it may die or know less', async () => {
    const losses = new Losses();
    const { repair, runs } = repairs('own', 'own', 'all');
    losses.note(at(5));

    for (let run = 0; run < 4; run += 1) await losses.repair(repair);

    expect(runs.map(({ isOwnDone }) => isOwnDone)).toEqual([false, true, true]);
  });

  test('that are noted during a repair are repaired next', async () => {
    const losses = new Losses();
    const { repair, runs } = repairs('all', 'all');
    losses.note(at(5));

    await losses.repair((since, isOwnDone) => {
      losses.note(at(3));
      return repair(since, isOwnDone);
    });
    await losses.repair(repair);

    expect(runs.map(({ since }) => since)).toEqual([at(5), at(3)]);
  });
});
