// Nodes that share sources, on a database in memory. Every call starts once. No more calls are up
// than a trunk allows or a node has room for. A lost answer loses no call.

import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type {
  CallSource,
  CallTakes,
  QueuedEvent,
  Taken,
  TakeRequest,
  TrunkLimits,
  Turn,
} from '../../src/calls/dialout-ports.ts';
import { CallTaking } from '../../src/dialout/call-taking.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { eventually } from '../support/eventually.ts';

type Options = { readonly limits?: TrunkLimits; readonly room?: number };

/** The database that the nodes of a test share. */
class Sql {
  readonly waiting: AcceptedCall[] = [];
  readonly expired: AcceptedCall[] = [];
  readonly notHere: CallId[] = [];
  readonly slots = new Set<CallId>();
  /** State of the first event of each call. */
  queued: QueuedEvent = 'stored';
  readonly faults = { take: 0, answer: 0, release: 0 };
  /** Counts the takes of all nodes. */
  takeCount = 0;
  mostUp = 0;

  /** Does what `take_calls` does for one process and source. */
  takes(): CallTakes {
    let last: { takeId: number; calls: readonly AcceptedCall[] } = { takeId: 0, calls: [] };
    return {
      take: async (request) => {
        this.takeCount += 1;
        if (this.faults.take-- > 0) throw new Error('SQL is unreachable');
        const isNew = request.takeId > last.takeId;
        const calls = isNew ? this.#takeNew(request) : last.calls;
        if (request.isRepeated || calls.length > 0) last = { takeId: request.takeId, calls };
        if (this.faults.answer-- > 0) throw new Error('SQL went away with the answer');
        const grants = calls.map((call, index) => ({
          call,
          startInMs: index,
          queued: this.queued,
        }));
        return { grants, tookMs: 0, ...(calls.length > 0 ? { retryInMs: 1 } : {}) };
      },
      nextStart: async () => ({ startInMs: 0, tookMs: 0 }),
      release: async (legIds) => {
        if (this.faults.release-- > 0) throw new Error('SQL is unreachable');
        for (const legId of legIds) this.slots.delete(legId as CallId);
      },
      sweep: async (here) => ({
        expired: this.expired.splice(0).map((call) => ({ call })),
        isHolding: false,
        waiting: new Map(this.waiting.length > 0 ? [['carrier', this.waiting.length]] : []),
        notHere: this.notHere.filter((callId) => !here.includes(callId)),
      }),
    };
  }

  #takeNew({ limits, wanted }: TakeRequest): readonly AcceptedCall[] {
    const most = Math.min(wanted, (limits?.maxConcurrentCalls ?? 1_000) - this.slots.size);
    const calls = this.waiting.splice(0, Math.max(0, most));
    if (limits !== undefined) for (const { callId } of calls) this.slots.add(callId);
    this.mostUp = Math.max(this.mostUp, this.slots.size);
    return calls;
  }
}

function world({ limits, room = 1_000 }: Options = {}) {
  const sql = new Sql();
  const { waiting, slots, expired, notHere, faults } = sql;
  const started: CallId[] = [];
  const queued: QueuedEvent[] = [];
  const turns: (Turn | undefined)[] = [];
  const ended: CallId[] = [];
  const hints: CallSource[] = [];
  const refused: string[] = [];
  const lease = { isHeld: true };
  const takesByNode = new Map<CallTaking, CallTakes>();
  let mostHere = 0;

  const node = (onStart: (callId: CallId, taking: CallTaking) => void) => {
    const here = new Set<CallId>();
    const takes = sql.takes();
    const taking: CallTaking = new CallTaking({
      reviewCampaigns: async () => false,
      takes,
      limitsOf: (trunk) => (trunk === 'carrier' ? limits : undefined),
      room: () => room - here.size,
      mayTake: () => lease.isHeld,
      start: ({ callId }, queuedEvent, turn) => {
        here.add(callId);
        mostHere = Math.max(mostHere, here.size);
        started.push(callId);
        queued.push(queuedEvent);
        turns.push(turn);
        taking.onPlaced(callId);
        setTimeout(() => {
          here.delete(callId);
          onStart(callId, taking);
        }, 2);
      },
      refuse: async ({ callId }, _queued, { rule }) => void refused.push(`${callId} ${rule}`),
      isHere: (callId) => here.has(callId),
      here: () => [...here],
      endUnknown: async (callIds) => void ended.push(...callIds),
      ends: {
        recordQueued: async ({ call: { callId } }, { outcome }) => {
          if (outcome === 'expired') ended.push(callId);
          return true;
        },
      },
      hint: (source) => void hints.push(source),
      clock: { now: () => new Date() },
      logger: silentLogger,
    });
    takesByNode.set(taking, takes);
    return taking;
  };
  /** Takes what the node's own takes would take, e.g. along with another statement. */
  const take = async (taking: CallTaking, request: TakeRequest): Promise<Taken> => {
    const takes = takesByNode.get(taking);
    if (takes === undefined) throw new Error('this is no node of this world');
    return await takes.take(request);
  };
  const accept = (count: number): readonly AcceptedCall[] => {
    const calls = Array.from({ length: count }, () => {
      const call = acceptedCall();
      return { ...call, request: { ...call.request, trunk: 'carrier' } };
    });
    waiting.push(...calls);
    return calls;
  };
  return {
    ...{
      waiting,
      slots,
      started,
      turns,
      queued,
      expired,
      ended,
      hints,
      notHere,
      faults,
      lease,
      node,
      take,
      accept,
    },
    setQueued: (event: QueuedEvent) => {
      sql.queued = event;
    },
    takeCount: () => sql.takeCount,
    mostUp: () => sql.mostUp,
    mostHere: () => mostHere,
  };
}

const ends = (callId: CallId, taking: CallTaking): void => {
  taking.onReleased(callId);
  taking.onEnded(callId);
};

describe('nodes that share a trunk', () => {
  test('start every call once, within its slots', async () => {
    const w = world({ limits: { maxConcurrentCalls: 5 } });
    const nodes = [w.node(ends), w.node(ends)];
    w.accept(60);
    for (const node of nodes) node.wake('carrier');
    await eventually(() => w.started.length === 60 && w.slots.size === 0, 'all calls are over');

    expect(new Set(w.started).size).toBe(60);
    expect(w.mostUp()).toBe(5);
    await Promise.all(nodes.map((node) => node.stop()));
  });

  test('keep a slot until the leg is off the wire, even if the call has ended', async () => {
    const w = world({ limits: { maxConcurrentCalls: 1 } });
    let release = (): void => undefined;
    const node = w.node((callId, taking) => {
      release = () => taking.onReleased(callId);
      taking.onEnded(callId);
    });
    w.accept(2);
    node.wake('carrier');
    await eventually(() => w.started.length === 1, 'one is up');
    await node.sweep();
    expect(w.slots.size).toBe(1);
    release();
    await eventually(() => w.started.length === 2, 'the other follows');
    await node.stop();
  });

  test('take no more calls than a process has room for, and continue when it has room', async () => {
    const w = world({ limits: { maxConcurrentCalls: 50 }, room: 2 });
    const node = w.node(ends);
    for (const call of w.accept(9)) node.accepted(call);
    await eventually(() => w.started.length === 9, 'all were up');

    expect(w.mostHere()).toBe(2);
    await node.stop();
  });

  test('continue when the database is back, and later release a slot that could not be released', async () => {
    const w = world({ limits: { maxConcurrentCalls: 1 } });
    const node = w.node(ends);
    w.faults.take = 1;
    w.faults.release = 1;
    w.accept(2);
    node.wake('carrier');
    await eventually(() => w.started.length === 1, 'the first is up');
    await eventually(async () => {
      await node.sweep();
      return w.started.length === 2;
    }, 'the second follows');
    await node.stop();
  });
});

describe.each([
  ['a trunk with limits', { limits: { maxConcurrentCalls: 3 } }],
  ['a source without limits', {}],
])('a take of %s whose answer is lost', (_, options: Options) => {
  test('is repeated, and its calls start once', async () => {
    const w = world(options);
    const node = w.node(ends);
    w.faults.answer = 2;
    w.accept(5);
    node.wake('carrier');
    await eventually(() => w.started.length === 5 && w.slots.size === 0, 'all were up');

    expect(new Set(w.started).size).toBe(5);
    await node.stop();
  });

  test('is repeated even without room, and while this process stops', async () => {
    const w = world({ ...options, room: 2 });
    const node = w.node(() => undefined);
    w.faults.answer = 1;
    w.accept(5);
    node.wake('carrier');
    await eventually(() => w.waiting.length === 3, 'two are taken');
    await node.stop();

    expect(w.started).toHaveLength(2);
  });

  test('is not repeated while no INVITE may leave', async () => {
    const w = world(options);
    const node = w.node(ends);
    w.faults.answer = 1;
    w.accept(2);
    node.wake('carrier');
    await eventually(() => w.waiting.length === 0, 'both are taken');
    w.lease.isHeld = false;
    await new Promise((resolve) => setImmediate(resolve));
    expect(w.started).toEqual([]);

    w.lease.isHeld = true;
    await eventually(() => w.started.length === 2, 'both are started');
    await node.stop();
  });
});

describe('a take along with calls that are accepted', () => {
  test('starts its calls, and no take of its own follows', async () => {
    const w = world();
    const node = w.node(ends);
    const along = node.takeAlong('carrier', 2);
    if (along === undefined) throw new Error('nothing is taken along');
    const calls = w.accept(2);
    for (const call of calls) node.accepted(call, true);
    along.taken(await w.take(node, along.request));
    await eventually(() => w.started.length === 2, 'both are started');

    expect(along.request).toMatchObject({ takeId: 1, isRepeated: false, wanted: 2 });
    await node.stop();
    expect([w.started, w.hints]).toEqual([calls.map(({ callId }) => callId), []]);
    expect(w.takeCount()).toBe(1);
  });

  test('begins only if no take is under way', async () => {
    const w = world();
    const node = w.node(ends);
    const first = node.takeAlong('carrier', 1);

    expect(node.takeAlong('carrier', 1)).toBeUndefined();
    expect(node.takeAlong('another', 1)).toBeDefined();
    first?.undone();
    await eventually(() => node.takeAlong('carrier', 1) !== undefined, 'the next one begins');
  });

  test.each([
    { case: 'has no room', options: { room: 0 }, isHeld: true },
    { case: 'may not place calls', options: {}, isHeld: false },
  ])('does not begin in a process that $case', ({ options, isHeld }) => {
    const w = world(options);
    w.lease.isHeld = isHeld;

    expect(w.node(ends).takeAlong('carrier', 1)).toBeUndefined();
  });

  test('leaves calls beyond its limits to the next take', async () => {
    const w = world({ room: 1 });
    const node = w.node(ends);
    const along = node.takeAlong('carrier', 2);
    const [first, second] = w.accept(2);
    if (along === undefined || first === undefined || second === undefined)
      throw new Error('nothing is taken along');
    const taken = await w.take(node, along.request);
    node.accepted(first, true);
    node.accepted(second);
    along.taken(taken);
    await eventually(() => w.started.length === 2, 'both were up');

    expect(along.request.wanted).toBe(1);
    await node.stop();
  });

  test('is repeated if its answer was lost', async () => {
    const w = world();
    const node = w.node(ends);
    const along = node.takeAlong('carrier', 1);
    const [call] = w.accept(1);
    if (along === undefined) throw new Error('nothing is taken along');
    await w.take(node, along.request);
    along.lost(new Error('SQL went away with the answer'));
    await eventually(() => w.started.length === 1, 'it is started');

    expect(w.started).toEqual([call?.callId]);
    await node.stop();
  });
});

describe('a call that is accepted', () => {
  test('is taken by this process at once', async () => {
    const w = world();
    const node = w.node(ends);
    const [call] = w.accept(1);
    if (call !== undefined) node.accepted(call);
    await eventually(() => w.started.length === 1, 'it is started');

    expect([w.started, w.hints, w.turns]).toEqual([[call?.callId], [], [undefined]]);
    await node.stop();
  });

  test.each(['unknown', 'stored', 'published'] as const)(
    'is started with the state of its first event: %s',
    async (event) => {
      const w = world();
      w.setQueued(event);
      const node = w.node(ends);
      for (const call of w.accept(2)) node.accepted(call);
      await eventually(() => w.started.length === 2, 'both are started');

      expect(w.queued).toEqual([event, event]);
      await node.stop();
    },
  );

  test('is left to another process if this one has no room', async () => {
    const w = world({ room: 0 });
    const [full, other] = [w.node(ends), world().node(ends)];
    const [call] = w.accept(1);
    if (call !== undefined) full.accepted(call);

    expect(w.hints).toEqual(['carrier']);
    expect(w.started).toEqual([]);
    await Promise.all([full.stop(), other.stop()]);
  });

  test('counts at once as waiting', async () => {
    const w = world({ room: 0 });
    const node = w.node(ends);
    for (const call of w.accept(3)) node.accepted(call);

    expect(node.waiting()).toEqual(new Map([['carrier', 3]]));
    await node.stop();
  });
});

describe('the sweep', () => {
  test('finds calls whose hint was lost', async () => {
    const w = world();
    const node = w.node(ends);
    const [call] = w.accept(1);
    await node.sweep();
    await eventually(() => w.started.length === 1, 'it is started');

    expect(w.started).toEqual([call?.callId]);
    await node.stop();
  });

  test('returns whether the next sweep may find anything before another call is accepted', async () => {
    const w = world();
    const node = w.node(ends);
    expect(await node.sweep()).toBe(false);

    w.lease.isHeld = false;
    expect(await node.sweep()).toBe(true);
    w.lease.isHeld = true;
    w.accept(1);
    expect(await node.sweep()).toBe(true);
    await eventually(async () => !(await node.sweep()), 'the call is over');
    expect(w.started).toHaveLength(1);
    await node.stop();
  });

  test('ends calls that waited too long, even without room for a call', async () => {
    const w = world({ room: 0 });
    const node = w.node(ends);
    const call = acceptedCall();
    w.expired.push(call);
    await node.sweep();

    expect(w.ended).toEqual([call.callId]);
    await node.stop();
  });

  test('ends a call that SQL assigns to this process without a machine, when it is found twice', async () => {
    const w = world();
    const node = w.node(ends);
    const { callId } = acceptedCall();
    w.notHere.push(callId);
    await node.sweep();
    expect(w.ended).toEqual([]);
    await node.sweep();
    expect(w.ended).toEqual([callId]);
    // A call that cannot be ended now is not tried every second.
    await node.sweep();
    expect(w.ended).toEqual([callId]);
    await node.stop();
  });

  test('does nothing without the lease or after the stop', async () => {
    const w = world();
    const node = w.node(ends);
    w.accept(1);
    w.expired.push(acceptedCall());
    w.lease.isHeld = false;
    await node.sweep();
    w.lease.isHeld = true;
    await node.stop();
    await node.sweep();

    expect([w.started, w.ended, w.waiting.length]).toEqual([[], [], 1]);
    expect(node.wake('carrier')).toBe(false);
  });
});

test('starts calls that were taken when the process stops', async () => {
  const w = world({ limits: { maxConcurrentCalls: 3 } });
  const node = w.node(() => undefined);
  w.accept(5);
  node.wake('carrier');
  await eventually(() => w.slots.size === 3, 'three are taken');
  await node.stop();

  expect(w.started).toHaveLength(3);
  expect(w.waiting).toHaveLength(2);
});
