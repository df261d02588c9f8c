import { expect, test } from 'vitest';
import { type GateLimits, OriginGates, originOf } from '../../src/notifier/origin-gates.ts';

const limits: GateLimits = {
  maxActive: 2,
  maxActiveFailing: 1,
  failuresToFailing: 2,
  maxWaiting: 2,
  maxWaitingFailing: 1,
  maxUntrusted: 100,
};
const origin = 'https://hooks.example';
const other = 'https://other.example';

/** Starts an `enter` and tells what has become of it so far. */
function entering(gates: OriginGates, target: string) {
  const state: { result?: boolean } = {};
  const done = gates.enter(target, 0).then((result) => {
    state.result = result;
  });
  return { state, done };
}

async function fail(gates: OriginGates, target: string, times: number) {
  for (let failures = 0; failures < times; failures += 1) {
    await gates.enter(target, 0);
    gates.leave(target, 0, true);
  }
}

test('a receiver is known by its origin, however it is spelled', () => {
  const spellings = ['https://Hooks.example/a', 'https://hooks.example:443/b?c', origin];
  expect(new Set(spellings.map(originOf))).toEqual(new Set([origin]));
  expect([originOf(undefined), originOf('nonsense')]).toEqual(['', '']);
});

test('only so many are under way to one receiver; others are free', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(origin, 0);
  await gates.enter(origin, 0);

  const third = entering(gates, origin);
  expect(await gates.enter(other, 0)).toBe(true);
  expect(third.state.result).toBeUndefined();

  gates.leave(origin, 0, false);
  await third.done;
  expect(third.state.result).toBe(true);
});

test('those beyond the waiting room are turned away, and the database is asked for none', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(origin, 0);
  await gates.enter(origin, 0);
  const waiting = [entering(gates, origin), entering(gates, origin)];

  expect(await gates.enter(origin, 0)).toBe(false);
  expect(gates.hasRoom(origin)).toBe(false);
  expect(gates.hasRoom(other)).toBe(true);
  expect(gates.rooms().byOrigin.get(origin)).toBe(0);

  gates.close();
  await Promise.all(waiting.map(({ done }) => done));
  expect(waiting.map(({ state }) => state.result)).toEqual([false, false]);
});

test('says when a receiver that answers has room for those that were turned away', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(origin, 0);
  await gates.enter(origin, 0);
  const waiting = [entering(gates, origin), entering(gates, origin)];
  await gates.enter(origin, 0);

  expect(gates.leave(origin, 0, false)).toBe(true);
  expect(gates.leave(origin, 0, false)).toBe(false);
  await Promise.all(waiting.map(({ done }) => done));
});

test('a receiver that fails gets fewer at once, until one succeeds', async () => {
  const gates = new OriginGates(limits);
  await fail(gates, origin, 2);

  await gates.enter(origin, 0);
  const second = entering(gates, origin);
  await Promise.resolve();
  expect(second.state.result).toBeUndefined();

  gates.leave(origin, 0, false);
  await second.done;
  expect(await gates.enter(origin, 0)).toBe(true);
});

test('when a receiver fails, most of those that wait for it go back', async () => {
  const gates = new OriginGates({ ...limits, failuresToFailing: 1 });
  await gates.enter(origin, 0);
  await gates.enter(origin, 0);
  const waiting = [entering(gates, origin), entering(gates, origin)];

  gates.leave(origin, 0, true);
  await waiting[1]?.done;
  expect(waiting.map(({ state }) => state.result)).toEqual([undefined, false]);

  gates.leave(origin, 0, true);
  await waiting[0]?.done;
  expect(waiting[0]?.state.result).toBe(true);
});

test('all that never answered share one part of the room; those that do answer have theirs', async () => {
  const gates = new OriginGates({ ...limits, maxUntrusted: 4 });
  await gates.enter(origin, 0);
  gates.leave(origin, 0, false);
  for (const dead of ['https://a.example', 'https://b.example']) {
    await gates.enter(dead, 0);
    await gates.enter(dead, 0);
  }

  expect(gates.hasRoom('https://c.example')).toBe(false);
  expect(gates.rooms().ofOthers).toBe(0);
  expect(gates.hasRoom('https://a.example')).toBe(false);
  expect(gates.hasRoom(origin)).toBe(true);

  gates.leave('https://a.example', 0, true);
  expect(gates.hasRoom('https://c.example')).toBe(true);
});

test('an idle receiver is forgotten, and its failures with it', async () => {
  const gates = new OriginGates(limits);
  await fail(gates, origin, 2);

  gates.forgetIdle(120_000);

  expect(gates.size).toBe(0);
  expect(await gates.enter(origin, 120_000)).toBe(true);
  expect(await gates.enter(origin, 120_000)).toBe(true);
});
