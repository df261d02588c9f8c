import { describe, expect, test } from 'vitest';
import {
  type GateLimits,
  OriginGates,
  originOf,
  type Receiver,
} from '../../src/notifier/origin-gates.ts';

const limits: GateLimits = {
  maxActive: 2,
  maxActiveFailing: 1,
  failuresToFailing: 2,
  maxWaiting: 2,
  maxWaitingFailing: 1,
  maxCalls: 1_000,
  maxUntrusted: 100,
};
const receiverOf = (origin: string, accountId = 'acme'): Receiver => ({ accountId, origin });
const receiver = receiverOf('https://hooks.example');
const other = receiverOf('https://other.example');

/** Starts an `enter` and reports its state so far. */
function entering(gates: OriginGates, target: Receiver) {
  const state: { result?: boolean } = {};
  const done = gates.enter(target, 0).then((result) => {
    state.result = result;
  });
  return { state, done };
}

async function fail(gates: OriginGates, target: Receiver, times: number) {
  for (let failures = 0; failures < times; failures += 1) {
    await gates.enter(target, 0);
    gates.leave(target, 0, true);
  }
}

test('URLs that spell the same origin differently belong to one receiver', () => {
  const { origin } = receiver;
  const spellings = ['https://Hooks.example/a', 'https://hooks.example:443/b?c', origin];
  expect(new Set(spellings.map(originOf))).toEqual(new Set([origin]));
  expect([originOf(undefined), originOf('nonsense')]).toEqual(['', '']);
});

test('bounds the attempts under way to one receiver, and leaves others free', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(receiver, 0);
  await gates.enter(receiver, 0);

  const third = entering(gates, receiver);
  expect(await gates.enter(other, 0)).toBe(true);
  expect(third.state.result).toBeUndefined();

  gates.leave(receiver, 0, false);
  await third.done;
  expect(third.state.result).toBe(true);
});

test('rejects calls beyond the waiting room, and reports no room to the database', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(receiver, 0);
  await gates.enter(receiver, 0);
  const waiting = [entering(gates, receiver), entering(gates, receiver)];

  expect(await gates.enter(receiver, 0)).toBe(false);
  expect(gates.hasRoom(receiver)).toBe(false);
  expect(gates.hasRoom(other)).toBe(true);
  expect(gates.rooms().byReceiver).toContainEqual({ ...receiver, room: 0 });

  gates.close();
  await Promise.all(waiting.map(({ done }) => done));
  expect(waiting.map(({ state }) => state.result)).toEqual([false, false]);
});

test('reports when a receiver that answers has room for rejected calls', async () => {
  const gates = new OriginGates(limits);
  await gates.enter(receiver, 0);
  await gates.enter(receiver, 0);
  const waiting = [entering(gates, receiver), entering(gates, receiver)];
  await gates.enter(receiver, 0);

  expect(gates.leave(receiver, 0, false)).toBe(true);
  expect(gates.leave(receiver, 0, false)).toBe(false);
  await Promise.all(waiting.map(({ done }) => done));
});

test('a failing receiver gets fewer attempts at once, until one succeeds', async () => {
  const gates = new OriginGates(limits);
  await fail(gates, receiver, 2);

  await gates.enter(receiver, 0);
  const second = entering(gates, receiver);
  await Promise.resolve();
  expect(second.state.result).toBeUndefined();

  gates.leave(receiver, 0, false);
  await second.done;
  expect(await gates.enter(receiver, 0)).toBe(true);
});

test('when a receiver fails, most of its waiting calls go back to the database', async () => {
  const gates = new OriginGates({ ...limits, failuresToFailing: 1 });
  await gates.enter(receiver, 0);
  await gates.enter(receiver, 0);
  const waiting = [entering(gates, receiver), entering(gates, receiver)];

  gates.leave(receiver, 0, true);
  await waiting[1]?.done;
  expect(waiting.map(({ state }) => state.result)).toEqual([undefined, false]);

  gates.leave(receiver, 0, true);
  await waiting[0]?.done;
  expect(waiting[0]?.state.result).toBe(true);
});

test('receivers that never answered share one part of the places; the others keep theirs', async () => {
  const gates = new OriginGates({ ...limits, maxUntrusted: 8 });
  await gates.enter(receiver, 0);
  gates.leave(receiver, 0, false);
  const dead = receiverOf('https://a.example');
  for (const each of [dead, receiverOf('https://b.example')]) {
    await gates.enter(each, 0);
    await gates.enter(each, 0);
  }

  expect(gates.hasRoom(receiverOf('https://c.example'))).toBe(false);
  expect(gates.hasRoom(dead)).toBe(false);
  expect(gates.hasRoom(receiver)).toBe(true);

  gates.leave(dead, 0, true);
  expect(gates.hasRoom(receiverOf('https://c.example'))).toBe(true);
});

describe('accounts', () => {
  const hold = (gates: OriginGates, accountId: string, calls: number) => {
    for (let call = 0; call < calls; call += 1) gates.hold(accountId);
  };
  /** Holds as many places as the account gets. */
  const fill = (gates: OriginGates, accountId: string) => {
    let held = 0;
    for (; gates.hasRoom(receiverOf('https://hooks.example', accountId)); held += 1)
      gates.hold(accountId);
    return held;
  };

  test('that are alone get half of the places, and the next account gets half of the rest', () => {
    const gates = new OriginGates({ ...limits, maxCalls: 1_000, maxUntrusted: 1_000 });
    expect(fill(gates, 'greedy')).toBe(500);
    expect(fill(gates, 'second')).toBe(250);
    expect(fill(gates, 'third')).toBe(125);
    expect(gates.hasRoom(receiverOf('https://hooks.example', 'greedy'))).toBe(false);
  });

  test('that hold more than their share get no place until they hold less', async () => {
    const gates = new OriginGates({ ...limits, maxCalls: 9 });
    hold(gates, 'greedy', 4);
    hold(gates, 'second', 2);
    const greedy = receiverOf('https://hooks.example', 'greedy');
    expect(gates.hasRoom(greedy)).toBe(false);
    expect(await gates.enter(greedy, 0)).toBe(false);
    gates.release('greedy');
    expect(gates.hasRoom(greedy)).toBe(true);
    expect(await gates.enter(greedy, 0)).toBe(true);
  });

  test('have receivers of their own, even if they share an origin', async () => {
    const gates = new OriginGates(limits);
    await fail(gates, receiver, 2);
    const { origin } = receiver;

    expect(await gates.enter(receiver, 0)).toBe(true);
    expect(entering(gates, receiver).state.result).toBeUndefined();
    for (let sends = 0; sends < limits.maxActive; sends += 1)
      expect(await gates.enter(receiverOf(origin, 'another'), 0)).toBe(true);
  });

  test('share the part for receivers that never answered', async () => {
    const gates = new OriginGates({ ...limits, maxUntrusted: 4 });
    await gates.enter(receiver, 0);
    await gates.enter(other, 0);

    expect(gates.hasRoom(receiverOf('https://third.example'))).toBe(false);
    expect(gates.hasRoom(receiverOf('https://third.example', 'another'))).toBe(true);
  });

  test('that are crowded give each receiver no more than a failing one gets', async () => {
    const gates = new OriginGates({ ...limits, maxActive: 10, maxCalls: 30 });
    hold(gates, receiver.accountId, 9);
    await gates.enter(receiver, 0);
    await gates.enter(receiver, 0);
    expect(gates.hasRoom(receiver)).toBe(true);

    hold(gates, receiver.accountId, 1);

    expect(gates.hasRoom(receiver)).toBe(false);
    expect(gates.hasRoom(other)).toBe(true);
    const { byReceiver, byAccount, unlistedAccounts } = gates.rooms();
    expect(byReceiver).toEqual([{ ...receiver, room: 0 }]);
    expect(byAccount).toEqual([{ accountId: receiver.accountId, room: 10, byNewReceiver: 2 }]);
    expect(unlistedAccounts).toEqual({ room: 20, byNewReceiver: 2 });
  });
});

test('forgets an idle receiver and its failures', async () => {
  const gates = new OriginGates(limits);
  await fail(gates, receiver, 2);

  gates.forgetIdle(120_000);

  expect(gates.size).toBe(0);
  expect(await gates.enter(receiver, 120_000)).toBe(true);
  expect(await gates.enter(receiver, 120_000)).toBe(true);
});
