import { expect, test } from 'vitest';
import { takeTurns } from '../../src/lib/turns.ts';
import { eventually } from '../support/eventually.ts';

test('limits running and waiting work, keeps the order of arrival, and refuses the rest', async () => {
  const turns = takeTurns({ running: 2, waiting: 3 }, () => new Error('full'));
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (index: number) =>
    turns(async () => {
      begun.push(index);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (index === 0) throw new Error('failed');
      return index;
    });

  const all = Promise.allSettled([0, 1, 2, 3, 4, 5].map(work));
  expect(begun).toEqual([0, 1]);
  for (let ended = 0; ended < 5; ended += 1) {
    await eventually(() => ends.length > ended, 'another one runs');
    expect(begun.length - ended).toBeLessThanOrEqual(2);
    ends[ended]?.();
  }
  const settled = await all;
  const late = work(6);
  await eventually(() => ends.length === 6, 'the last one runs');
  ends[5]?.();

  expect(begun).toEqual([0, 1, 2, 3, 4, 6]);
  expect(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason))),
  ).toEqual(['Error: failed', 1, 2, 3, 4, 'Error: full']);
  expect(await late).toBe(6);
});

test('runs urgent work before waiting work, in its own order', async () => {
  const turns = takeTurns({ running: 1, waiting: 4 }, () => new Error('full'));
  const begun: string[] = [];
  const work = (name: string, isUrgent: boolean) =>
    turns(async () => void begun.push(name), { isUrgent });

  await Promise.all([
    work('first', false),
    work('second', false),
    work('third', false),
    work('urgent', true),
    work('also urgent', true),
  ]);

  expect(begun).toEqual(['first', 'urgent', 'also urgent', 'second', 'third']);
  await expect(
    Promise.all(Array.from({ length: 6 }, () => work('one too many', true))),
  ).rejects.toThrow('full');
});

test('refuses work that has waited too long, which then takes no turn', async () => {
  const turns = takeTurns({ running: 1, waiting: 4, waitMs: 20 }, () => new Error('full'));
  let end = (): void => undefined;
  const running = turns(() => new Promise<void>((resolve) => (end = resolve)));
  const begun: string[] = [];
  const impatient = turns(async () => void begun.push('impatient'));

  await expect(impatient).rejects.toThrow('full');
  const next = turns(async () => void begun.push('next'));
  end();
  await Promise.all([running, next]);
  expect(begun).toEqual(['next']);
});
