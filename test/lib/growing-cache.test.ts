import { LRUCache } from 'lru-cache';
import { expect, test } from 'vitest';
import { upTo } from '../../src/lib/growing-cache.ts';

test('a cache keeps the entries that were used last, up to its bound', () => {
  const cache = new LRUCache<string, number>(upTo(2));
  cache.set('a', 1);
  cache.set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  cache.set('c', 4);

  expect([...cache.entries()]).toEqual([
    ['c', 4],
    ['a', 1],
  ]);
});
