import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { Changes } from '../../src/lib/changes.ts';

function counted() {
  const changes = new Changes();
  const never = new AbortController();
  let count = 0;
  const until = (wanted: number, signal = never.signal) =>
    changes.until(() => count >= wanted, signal);
  const add = (): void => {
    count += 1;
    changes.notify();
  };
  return { until, add, never };
}

test('resolves each waiter when its own condition holds', async () => {
  const { until, add } = counted();
  const order: string[] = [];
  const waiting = [
    until(2).then((isSo) => order.push(`second ${isSo}`)),
    until(1).then((isSo) => order.push(`first ${isSo}`)),
  ];

  add();
  await waiting[1];
  expect(order).toEqual(['first true']);
  add();
  await Promise.all(waiting);
  expect(order).toEqual(['first true', 'second true']);
});

test('returns true at once if the condition holds, even with an aborted signal', async () => {
  const { until } = counted();

  expect(await until(0, AbortSignal.abort())).toBe(true);
});

test('returns false if the signal aborts before or during the wait', async () => {
  const { until, never } = counted();
  const waiting = until(1);
  never.abort();

  expect(await waiting).toBe(false);
  expect(await until(1)).toBe(false);
});

test('leaves no listener behind', async () => {
  const { until, add, never } = counted();
  const waiting = Promise.all([until(1), until(1)]);
  expect(getEventListeners(never.signal, 'abort')).toHaveLength(2);
  add();

  expect(await waiting).toEqual([true, true]);
  expect(getEventListeners(never.signal, 'abort')).toEqual([]);
});
