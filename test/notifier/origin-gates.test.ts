import { expect, test } from 'vitest';
import { OriginGates } from '../../src/notifier/origin-gates.ts';

const limits = { maxActive: 2, maxActiveFailing: 1, failuresToFailing: 2, maxWaiting: 2 };
const url = 'https://Hooks.example/a';
const sameReceiver = 'https://hooks.example:443/b';

/** Starts an `enter` and tells what has become of it so far. */
function entering(gates: OriginGates, target: string) {
  const state: { result?: boolean } = {};
  const done = gates.enter(target, 0).then((result) => {
    state.result = result;
  });
  return { state, done };
}

test('only so many are under way to one receiver, however it is spelled; others are free', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(url, 0);
  await gates.enter(sameReceiver, 0);

  const third = entering(gates, url);
  expect(await gates.enter('https://other.example/', 0)).toBe(true);
  expect(third.state.result).toBeUndefined();

  gates.leave(sameReceiver, 0, false);
  await third.done;
  expect(third.state.result).toBe(true);
});

test('those beyond the waiting room are turned away, and the database is told whom to leave out', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(url, 0);
  await gates.enter(url, 0);
  const waiting = [entering(gates, url), entering(gates, sameReceiver)];

  expect(await gates.enter(url, 0)).toBe(false);
  expect(gates.hasRoom(sameReceiver)).toBe(false);
  expect(gates.hasRoom('https://other.example/')).toBe(true);
  expect(gates.fullOrigins()).toEqual(['https://hooks.example', 'https://hooks.example:443']);

  gates.close();
  await Promise.all(waiting.map(({ done }) => done));
  expect(waiting.map(({ state }) => state.result)).toEqual([false, false]);
});

test('a receiver that fails gets fewer at once, until one succeeds', async () => {
  const gates = new OriginGates(limits);
  for (let failures = 0; failures < 2; failures += 1) {
    await gates.enter(url, 0);
    gates.leave(url, 0, true);
  }

  await gates.enter(url, 0);
  const second = entering(gates, url);
  await Promise.resolve();
  expect(second.state.result).toBeUndefined();

  gates.leave(url, 0, false);
  await second.done;
  expect(await gates.enter(url, 0)).toBe(true);
});

test('an idle receiver is forgotten, and its failures with it', async () => {
  const gates = new OriginGates(limits);
  for (let failures = 0; failures < 2; failures += 1) {
    await gates.enter(url, 0);
    gates.leave(url, 0, true);
  }

  gates.forgetIdle(120_000);

  expect(await gates.enter(url, 120_000)).toBe(true);
  expect(await gates.enter(url, 120_000)).toBe(true);
});
