import { expect, test } from 'vitest';
import { createLookupCache } from '../../src/lib/lookup-cache.ts';

function cacheWith(load: (key: string) => Promise<string | undefined>) {
  const clock = { nowMs: 5_000 };
  const loads: string[] = [];
  const cache = createLookupCache(
    (key: string) => {
      loads.push(key);
      return load(key);
    },
    { ttlMs: 1_000, maxEntries: 3 },
    () => clock.nowMs,
  );
  return { cache, clock, loads };
}

test('shares one look-up between simultaneous callers, and repeats it when the result is too old', async () => {
  const { cache, clock, loads } = cacheWith((key) => Promise.resolve(`value of ${key}`));

  expect(await Promise.all([cache.memo('a'), cache.memo('a')])).toEqual(
    Array(2).fill('value of a'),
  );
  clock.nowMs += 999;
  await cache.memo('a');
  expect(loads).toEqual(['a']);
  clock.nowMs += 1;
  await cache.memo('a');
  expect(loads).toEqual(['a', 'a']);
});

test('remembers that nothing was found, but never a failure', async () => {
  let isFailing = true;
  const { cache, loads } = cacheWith(() =>
    isFailing ? Promise.reject(new Error('away')) : Promise.resolve(undefined),
  );

  await expect(cache.memo('a')).rejects.toThrow('away');
  isFailing = false;
  expect(await cache.memo('a')).toBeUndefined();
  expect(await cache.memo('a')).toBeUndefined();
  expect(loads).toEqual(['a', 'a']);
});

test('keeps no more entries than its limit, whatever keys callers ask for', async () => {
  const { cache, loads } = cacheWith((key) => Promise.resolve(key));

  for (const key of ['a', 'b', 'c', 'd']) await cache.memo(key);
  for (const key of ['b', 'c', 'd', 'a']) await cache.memo(key);

  expect(loads).toEqual(['a', 'b', 'c', 'd', 'a']);
});
