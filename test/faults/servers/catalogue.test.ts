// Tests how a seed draws the script of a storm of the servers.

import { expect, test } from 'vitest';
import { randomFrom } from '../random.ts';
import { catalogue, drawScript } from './catalogue.ts';

const namesOf = (seed: number, seconds: number): readonly string[] =>
  drawScript(catalogue, randomFrom(seed), seconds).map(({ name }) => name);

test('the same seed always draws the same script', () => {
  expect(namesOf(7, 900)).toEqual(namesOf(7, 900));
  expect(namesOf(7, 900)).not.toEqual(namesOf(8, 900));
});

test('a script has each fault at most once, and fits into its time', () => {
  const script = drawScript(catalogue, randomFrom(7), 900);
  const neededS = script.reduce((sum, fault) => sum + fault.seconds + fault.settleSeconds, 0);

  expect(neededS).toBeLessThanOrEqual(900);
  expect(new Set(script).size).toBe(script.length);
});

test('with enough time, every fault runs', () => {
  expect(namesOf(7, 10_000).toSorted()).toEqual(catalogue.map(({ name }) => name).toSorted());
});
