import { expect, test } from 'vitest';
import { BoundedMap } from '../../src/lib/bounded-map.ts';

function mapOf(...keys: readonly string[]) {
  const map = new BoundedMap<string, number>(3);
  for (const [index, key] of keys.entries()) map.set(key, index);
  return map;
}

const keysOf = (map: BoundedMap<string, number>) =>
  ['a', 'b', 'c', 'd', 'e'].filter((key) => map.has(key)).join('');

test('the one that was set longest ago makes room', () => {
  expect(keysOf(mapOf('a', 'b', 'c'))).toBe('abc');
  expect(keysOf(mapOf('a', 'b', 'c', 'd', 'e'))).toBe('cde');
});

test('one that is set again is new, and takes no second place', () => {
  const map = mapOf('a', 'b', 'c', 'a');
  expect(keysOf(map)).toBe('abc');
  expect(map.get('a')).toBe(3);

  map.set('d', 4);
  expect(keysOf(map)).toBe('acd');
});

test('what was deleted leaves room', () => {
  const map = mapOf('a', 'b', 'c');
  map.delete('b');
  map.set('d', 3);
  expect(keysOf(map)).toBe('acd');

  map.clear();
  expect(keysOf(map)).toBe('');
});
