// Nodes that share a trunk, on a queue in memory: every call starts once, and no more are up than the trunk allows.

import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { TrunkLimits, TrunkQueue } from '../../src/calls/dialout-ports.ts';
import { TrunkPacers } from '../../src/dialout/trunk-pacers.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { eventually } from '../support/eventually.ts';

function world(limits: TrunkLimits | undefined, options: { readonly room?: number } = {}) {
  const waiting: AcceptedCall[] = [];
  const slots = new Set<CallId>();
  const started: CallId[] = [];
  const faults = { take: 0, answer: 0, release: 0, room: 0 };
  const expired = new Set<CallId>();
  /** Taken, and nobody was told. */
  const untold: AcceptedCall[] = [];
  let mostUp = 0;
  let mostHere = 0;
  const queue: TrunkQueue = {
    take: async ({ limits: { maxConcurrentCalls = 1_000 }, wanted }) => {
      if (faults.take-- > 0) throw new Error('SQL is away');
      const count = Math.min(wanted, maxConcurrentCalls - slots.size);
      const calls = waiting.splice(0, count);
      for (const { callId } of calls) slots.add(callId);
      if (faults.answer-- > 0) {
        untold.push(...calls);
        throw new Error('SQL went away with the answer');
      }
      mostUp = Math.max(mostUp, slots.size);
      const clockMs = performance.now();
      const grants = calls.map((call, index) => ({ call, startAtMs: clockMs + index }));
      const taken = { grants, clockMs };
      return calls.length === count && count > 0 ? { ...taken, retryInMs: 1 } : taken;
    },
    untold: async (_trunk, known) =>
      untold.filter(({ callId }) => slots.has(callId) && !known.includes(callId)),
    nextStart: async () => ({ startAtMs: 0, clockMs: performance.now() }),
    release: async (callIds) => {
      if (faults.release-- > 0) throw new Error('SQL is away');
      for (const callId of callIds) slots.delete(callId);
    },
    releaseLost: async (held) => {
      for (const callId of slots) if (!held.includes(callId)) slots.delete(callId);
    },
    waitingByTrunk: async () => new Map([['carrier', waiting.length]]),
  };
  const node = (onStart: (callId: CallId, pacers: TrunkPacers) => void) => {
    const here = new Set<CallId>();
    const pacers: TrunkPacers = new TrunkPacers({
      queue,
      limitsOf: (trunk) => (trunk === 'carrier' ? limits : undefined),
      room: () => (faults.room-- > 0 ? 0 : (options.room ?? 1_000) - here.size),
      endIfExpired: async ({ callId }) => expired.has(callId),
      start: ({ callId }) => {
        here.add(callId);
        mostHere = Math.max(mostHere, here.size);
        started.push(callId);
        pacers.onPlaced(callId);
        setTimeout(() => {
          here.delete(callId);
          onStart(callId, pacers);
        }, 2);
      },
      logger: silentLogger,
    });
    return pacers;
  };
  const accept = (count: number) => {
    for (let index = 0; index < count; index += 1) waiting.push(acceptedCall());
  };
  return {
    waiting,
    slots,
    started,
    faults,
    expired,
    node,
    accept,
    mostUp: () => mostUp,
    mostHere: () => mostHere,
  };
}

const ends = (callId: CallId, pacers: TrunkPacers): void => {
  pacers.onReleased(callId);
  pacers.onEnded(callId);
};

describe('nodes that share a trunk', () => {
  test('start every call once, and hold to its slots', async () => {
    const w = world({ maxConcurrentCalls: 5 });
    const nodes = [w.node(ends), w.node(ends)];
    w.accept(60);
    for (const node of nodes) node.wake('carrier');
    await eventually(() => w.started.length === 60 && w.slots.size === 0, 'all calls are over');

    expect(new Set(w.started).size).toBe(60);
    expect(w.mostUp()).toBe(5);
    await Promise.all(nodes.map((node) => node.stop()));
  });

  test('keep a slot until the leg is off the wire, though the call has ended', async () => {
    const w = world({ maxConcurrentCalls: 1 });
    let release = (): void => undefined;
    const node = w.node((callId, pacers) => {
      release = () => pacers.onReleased(callId);
      pacers.onEnded(callId);
    });
    w.accept(2);
    node.wake('carrier');
    await eventually(() => w.started.length === 1, 'one is up');
    await node.look();
    expect(w.slots.size).toBe(1);
    release();
    await eventually(() => w.started.length === 2, 'the other follows');
    await node.stop();
  });

  test('take no more than this process has room for, and go on when it has', async () => {
    const w = world({ maxConcurrentCalls: 50 }, { room: 2 });
    const node = w.node(ends);
    w.accept(9);
    node.wake('carrier');
    await eventually(() => w.started.length === 9, 'all were up');

    expect(w.mostHere()).toBe(2);
    await node.stop();
  });

  test('go on when the database is back; a slot that could not be released is found later', async () => {
    const w = world({ maxConcurrentCalls: 1 });
    const node = w.node(ends);
    w.faults.take = 1;
    w.faults.release = 1;
    w.accept(2);
    node.wake('carrier');
    await eventually(() => w.started.length === 1, 'the first is up');
    await eventually(async () => {
      await node.look();
      return w.started.length === 2;
    }, 'the second follows');
    await node.stop();
  });

  test('start what they had taken when the database went away with the answer, once', async () => {
    const w = world({ maxConcurrentCalls: 3 });
    const node = w.node(ends);
    w.faults.answer = 1;
    w.accept(5);
    node.wake('carrier');
    await eventually(() => w.started.length === 5 && w.slots.size === 0, 'all were up');

    expect(new Set(w.started).size).toBe(5);
    await node.stop();
  });

  test('find what they had taken though the lease was away for a while, and end what waited too long', async () => {
    const w = world({ maxConcurrentCalls: 3 });
    const node = w.node(ends);
    w.accept(2);
    const [late, other] = w.waiting.map(({ callId }) => callId);
    if (late !== undefined) w.expired.add(late);
    w.faults.answer = 1;
    node.wake('carrier');
    await eventually(() => w.slots.size === 2, 'both are taken');
    w.faults.room = 2;
    await eventually(() => w.slots.size === 0, 'the one is over, the other has its end');

    expect(w.started).toEqual([other]);
    await node.stop();
  });

  test('take nothing more once they stop; what was taken is started', async () => {
    const w = world({ maxConcurrentCalls: 3 });
    const node = w.node(() => undefined);
    w.accept(5);
    node.wake('carrier');
    await eventually(() => w.slots.size === 3, 'three are taken');
    await node.stop();

    expect(w.started).toHaveLength(3);
    node.wake('carrier');
    expect(w.waiting).toHaveLength(2);
  });

  test('know a trunk without limits, which is none of their business', async () => {
    const node = world(undefined).node(ends);
    expect([node.isPaced('carrier'), node.isPaced(undefined)]).toEqual([false, false]);
    expect(await node.look()).toEqual([]);
    await node.stop();
  });
});
