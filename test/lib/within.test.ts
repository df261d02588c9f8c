import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { within } from '../../src/lib/within.ts';

const hourMs = 3_600_000;
const never = (): Promise<never> => new Promise(() => undefined);

function collectGarbage(): void {
  setFlagsFromString('--expose_gc');
  (runInNewContext('gc') as () => void)();
  setFlagsFromString('--no-expose_gc');
}

test('returns the result or the failure of the work, and leaves no listener behind', async () => {
  const { signal } = new AbortController();

  expect(await within(Promise.resolve('done'), hourMs, signal)).toBe('done');
  await expect(within(Promise.reject(new Error('away')), hourMs, signal)).rejects.toThrow('away');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('ends with the first bound, even if garbage is collected meanwhile', async () => {
  const over = within(never(), 50, new AbortController().signal);
  const overBySignal = within(never(), AbortSignal.timeout(50), new AbortController().signal);

  collectGarbage();

  expect(await over).toBeUndefined();
  expect(await overBySignal).toBeUndefined();
});

test('ends with the signal, at once if it has already aborted', async () => {
  const force = new AbortController();
  const waiting = within(never(), hourMs, force.signal);

  force.abort();

  expect(await waiting).toBeUndefined();
  expect(await within(never(), hourMs, force.signal)).toBeUndefined();
});
