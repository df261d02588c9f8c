// The bundler's functions for object spreads, which `npm run build` replaces (src/bundle.mjs).

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../../dist/bundle/', import.meta.url));

type Functions = {
  readonly spread: (target: object, source: unknown) => Record<string, unknown>;
  readonly rest: (source: object, excluded: readonly string[]) => Record<string, unknown>;
};

async function functionsOfBundle(): Promise<Functions> {
  const file = readdirSync(folder).find(
    (name) =>
      name.endsWith('.js') && readFileSync(folder + name, 'utf8').includes('__spreadValues='),
  );
  const module = (await import(`${folder}${file}`)) as Record<string, unknown>;
  const named = (name: string) =>
    Object.values(module).find((value) => typeof value === 'function' && value.name === name);
  return { spread: named('__spreadValues'), rest: named('__objRest') } as Functions;
}

test('spreads of the bundle copy like those of the language', async () => {
  const { spread, rest } = await functionsOfBundle();
  const symbol = Symbol('member');

  expect(spread({ a: 1 }, { a: 2, b: 3, [symbol]: 4 })).toEqual({ a: 2, b: 3, [symbol]: 4 });
  for (const nothing of [undefined, null, false, 0]) expect(spread({}, nothing)).toEqual({});
  expect(spread({}, 'ab')).toEqual({ 0: 'a', 1: 'b' });
  expect(rest({ a: 1, b: 2 }, ['a'])).toEqual({ b: 2 });
});

test('a member named __proto__ stays a member', async () => {
  const { spread, rest } = await functionsOfBundle();
  const hostile = JSON.parse('{"__proto__": {"isAdmin": true}, "a": 1}') as object;

  for (const copy of [spread({}, hostile), rest(hostile, ['a'])]) {
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(Object.hasOwn(copy, '__proto__')).toBe(true);
    expect(copy['isAdmin']).toBeUndefined();
  }
});
