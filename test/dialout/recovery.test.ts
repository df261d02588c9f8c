// A process dies; what it had put into SQL and on the stream by then is all that the next one has. For every point of
// death the story on the stream must come out whole: no gap in the sequences, one end, the same again when the next
// process dies too.

import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  amdFact,
  answeredFact,
  type CallProgress,
  dialingFact,
  dtmfFact,
  progressOfAccepted,
  queuedFact,
  ringingFact,
  type Stated,
} from '../../src/calls/call-facts.ts';
import { endOfRemoteBye } from '../../src/calls/call-outcome.ts';
import type { AcceptedCall, DialoutRequest } from '../../src/calls/call-types.ts';
import type { AmdEvent } from '../../src/calls/contract/amd-event.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { OrphanResult, StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { UnfinishedCall } from '../../src/calls/ports.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Recovery, type RecoveryPorts } from '../../src/recovery/recovery.ts';
import { acceptedCall, endEvent, storedLeg } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const at = (second: number) => new Date(Date.UTC(2026, 2, 1, 10, 0, second));
const now = at(40);
const recoveryOf = (ports: RecoveryPorts) => new Recovery(ports, 'node-1/new');
const recoverCalls = (ports: RecoveryPorts) => recoveryOf(ports).endLostProcesses();
const settleEnds = (ports: RecoveryPorts, until?: AbortSignal) =>
  recoveryOf(ports).settleEnds(until);

/** A call as the dead process told it: every fact up to `amd_human_detected` and a digit. */
function story(request: Partial<DialoutRequest> = {}) {
  const base = acceptedCall();
  const call: AcceptedCall = { ...base, request: { ...base.request, ...request } };
  let progress: CallProgress = progressOfAccepted(call);
  const tell = <Event extends CallEvent>({ event, ...sequences }: Stated<Event>): Event => {
    progress = { ...progress, ...sequences };
    return event;
  };
  const human: AmdEvent = { event: 'amd_human_detected', reason: 'short', elapsedMs: 900 };
  const queued = queuedFact(call);
  progress = { ...progress, sentAt: at(1) };
  const dialing = tell(dialingFact(progress, at(1), 'gw'));
  progress = { ...progress, ringingAt: at(2) };
  const response = { sipStatus: 180, sipReason: 'Ringing', earlyMedia: false };
  const ringing = tell(ringingFact(progress, at(2), response));
  const answeredAt = at(5);
  progress = { ...progress, answeredAt };
  const answered = tell(answeredFact({ ...progress, answeredAt }));
  progress = { ...progress, amdEvents: [human] };
  const amd = tell(amdFact({ ...progress, answeredAt }, at(6), human));
  const dtmf = tell(dtmfFact(progress, at(7), { digit: '5', source: 'rtp' }));
  return { call, queued, dialing, ringing, answered, amd, dtmf };
}
type Story = ReturnType<typeof story>;

function nextProcess(world: DialoutWorld) {
  const hungUp: StoredLeg[] = [];
  const { ledger, publisher } = world;
  const logger = silentLogger;
  return {
    hungUp,
    ports: {
      ledger,
      publisher,
      logger,
      factsOfCall: async (call: AcceptedCall) => world.factsOf(call.callId),
      onTheWire: () => [],
      sip: {
        endOrphan: async (leg: StoredLeg) => {
          hungUp.push(leg);
          return 'ended' as const;
        },
      },
      ends: createEndRecorder({ ledger, publisher, logger }),
      clock: { now: () => now },
    },
  };
}

function left(told: Story, more: Partial<UnfinishedCall> = {}): UnfinishedCall {
  return { call: told.call, ownerId: 'node-1/old', dialStartedAt: at(0), ...more };
}

function leftAnswered(told: Story, more: Partial<UnfinishedCall> = {}): UnfinishedCall {
  return left(told, {
    leg: { ...storedLeg, dialogId: 'dialog-1' },
    ringingAt: at(2),
    answeredAt: at(5),
    answeredEvent: told.answered,
    ...more,
  });
}

/** `type sequence/notification`, as a story is told aloud. */
function told(events: readonly CallEvent[]): readonly string[] {
  return events.map((event) => {
    const name = event.type === 'amd' ? event.data.amd.event : event.type;
    const { notificationSequence: notified } = event.data as { notificationSequence?: number };
    return `${name} ${event.eventSequence}${notified === undefined ? '' : `/${notified}`}`;
  });
}

function expectWhole(events: readonly CallEvent[]): void {
  const sequences = events.map((event) => event.eventSequence);
  expect(sequences).toEqual(sequences.map((_, index) => index + 1));
  const notified = events.flatMap(
    (event) => (event.data as { notificationSequence?: number }).notificationSequence ?? [],
  );
  expect(notified).toEqual(notified.map((_, index) => index + 1));
  expect(events.filter((event) => /completed|failed/.test(event.type))).toHaveLength(1);
  expect(new Set(events.map((event) => event.id)).size).toBe(events.length);
}

type CrashPoint = readonly [
  what: string,
  sql: (story: Story) => UnfinishedCall,
  stream: (story: Story) => readonly CallEvent[],
  then: readonly string[],
];

const crashPoints: readonly CrashPoint[] = [
  ['claimed, and nothing on the stream', left, () => [], ['queued 1', 'failed 2/1']],
  ['claimed', left, (s) => [s.queued], ['failed 2/1']],
  [
    'INVITE stored, `dialing` lost',
    (s) => left(s, { leg: storedLeg }),
    (s) => [s.queued],
    ['failed 2/1'],
  ],
  ['dialing', (s) => left(s, { leg: storedLeg }), (s) => [s.queued, s.dialing], ['failed 3/1']],
  [
    '`dialing` on the stream, the INVITE not stored',
    left,
    (s) => [s.queued, s.dialing],
    ['failed 3/1'],
  ],
  [
    'ringing',
    (s) => left(s, { leg: storedLeg, ringingAt: at(2) }),
    (s) => [s.queued, s.dialing, s.ringing],
    ['failed 4/1'],
  ],
  [
    'answer stored, `answered` lost',
    leftAnswered,
    (s) => [s.queued, s.dialing, s.ringing],
    ['answered 4/1', 'amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'answer stored with what the stream had not confirmed by then',
    (s) => leftAnswered(s, { unpublished: [s.dialing, s.ringing] }),
    (s) => [s.queued],
    ['dialing 2', 'ringing 3', 'answered 4/1', 'amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'answer stored, the stream confirmed half of it later',
    (s) => leftAnswered(s, { unpublished: [s.dialing, s.ringing] }),
    (s) => [s.queued, s.dialing],
    ['ringing 3', 'answered 4/1', 'amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'answer stored, the stream was away all the time',
    (s) => leftAnswered(s, { unpublished: [s.dialing, s.ringing] }),
    () => [],
    ['queued 1', 'dialing 2', 'ringing 3', 'answered 4/1', 'amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'answered',
    leftAnswered,
    (s) => [s.queued, s.dialing, s.ringing, s.answered],
    ['amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'a person was detected and pressed a digit',
    leftAnswered,
    (s) => [s.queued, s.dialing, s.ringing, s.answered, s.amd, s.dtmf],
    ['amd_stopped 7/3', 'completed 8/4'],
  ],
];

describe.each(crashPoints)('died when: %s', (_what, sql, stream, expected) => {
  function crashed() {
    const world = new DialoutWorld();
    const before = story();
    const unfinished = sql(before);
    world.unfinished.set(unfinished.call.callId, unfinished);
    world.put(...stream(before));
    return { world, unfinished, had: world.stream.length };
  }

  test('what is owed is told, in order and without a gap', async () => {
    const { world, had } = crashed();
    await recoverCalls(nextProcess(world).ports);
    await settled();

    expect(told(world.stream.slice(had))).toEqual(expected);
    expectWhole(world.stream);
  });

  test('a second recovery adds nothing', async () => {
    const { world } = crashed();
    await recoverCalls(nextProcess(world).ports);
    await settleEnds(nextProcess(world).ports);
    await settled();
    const story = [...world.stream];
    const publishes = world.published.length;
    const again = await recoverCalls(nextProcess(world).ports);
    await settleEnds(nextProcess(world).ports);

    expect(again.ended).toBe(0);
    expect(world.published).toHaveLength(publishes);
    expect(world.stream).toEqual(story);
  });

  test('a recovery that dies before it publishes is finished by the next one', async () => {
    const { world, had } = crashed();
    world.isPublishing = false;
    await recoverCalls(nextProcess(world).ports);
    world.isPublishing = true;
    await recoverCalls(nextProcess(world).ports);
    await settleEnds(nextProcess(world).ports);

    expect(told(world.stream.slice(had))).toEqual(expected);
    expectWhole(world.stream);
  });

  test('a recovery that dies in the middle of publishing is finished with the same bodies', async () => {
    const { world, had, unfinished } = crashed();
    world.isPublishing = false;
    await recoverCalls(nextProcess(world).ports);
    const first = world.published[0];
    if (first !== undefined) world.put(first);
    world.isPublishing = true;
    await settleEnds(nextProcess(world).ports);

    expect(told(world.stream.slice(had))).toEqual(expected);
    for (const event of world.published) expect(world.stream).toContainEqual(event);
    expect(world.ends.get(unfinished.call.callId)?.published).toBe(true);
  });

  test('what the dead process had sent and the stream stores late is dropped by its id', async () => {
    const { world, unfinished } = crashed();
    await recoverCalls(nextProcess(world).ports);
    await settled();
    if (unfinished.answeredEvent !== undefined) world.put(unfinished.answeredEvent);
    world.put(queuedFact(unfinished.call));

    expectWhole(world.stream);
  });
});

describe('SQL is of an earlier day than the stream, after a backup was restored', () => {
  test('a call that has ended meanwhile ends as it did: receivers have that end', async () => {
    const world = new DialoutWorld();
    const before = story();
    const unfinished = leftAnswered(before);
    world.unfinished.set(unfinished.call.callId, unfinished);
    const ended = endEvent(before.call);
    world.put(before.queued, before.dialing, before.ringing, before.answered, ended);
    const next = nextProcess(world);

    expect(await recoverCalls(next.ports)).toEqual({ ended: 1, failed: 0 });
    await settleEnds(nextProcess(world).ports);
    await settled();

    expect(world.ends.get(before.call.callId)).toMatchObject({ event: ended, published: true });
    for (const event of world.published) expect(event).toEqual(ended);
    expect(next.hungUp).toHaveLength(1);
  });
});

describe('the recovery', () => {
  test('hangs up the far ends that are known', async () => {
    const world = new DialoutWorld();
    const [one, other] = [leftAnswered(story()), left(story())];
    for (const unfinished of [one, other]) world.unfinished.set(unfinished.call.callId, unfinished);
    const next = nextProcess(world);
    const { ended } = await recoverCalls(next.ports);
    await settleEnds(next.ports);
    await settled();

    expect(ended).toBe(2);
    // By the recovery, and looked after by the one that settles the ends: here two processes.
    expect(new Set(next.hungUp)).toEqual(new Set([one.leg]));
    expect([...world.ends.values()].every(({ published }) => published)).toBe(true);
  });

  test('hangs up though NATS is away, and is done with a call when both have worked', async () => {
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.unfinished.set(one.call.callId, one);
    world.isPublishing = false;
    const next = nextProcess(world);
    await recoverCalls(next.ports);
    const round = settleEnds(next.ports);
    await settled();

    expect(new Set(next.hungUp)).toEqual(new Set([one.leg]));
    expect(world.ends.get(one.call.callId)?.published).toBe(false);
    world.resumePublishing();
    await round;
    await settled();
    expect(world.ends.get(one.call.callId)?.published).toBe(true);
  });

  test('hangs up though the story of a call cannot be read', async () => {
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.unfinished.set(one.call.callId, one);
    const next = nextProcess(world);
    const factsOfCall = () => Promise.reject(new Error('NATS is away'));
    const { failed } = await recoverCalls({ ...next.ports, factsOfCall });

    expect(failed).toBe(1);
    expect(next.hungUp).toEqual([one.leg]);
  });

  test('goes on trying while the SIP engine is away, and leaves it to the next process when it stops', async () => {
    vi.useFakeTimers();
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.unfinished.set(one.call.callId, one);
    const next = nextProcess(world);
    let tries = 0;
    const sip = {
      endOrphan: async () => {
        tries += 1;
        return 'unreachable' as const;
      },
    };
    const recovery = recoveryOf({ ...next.ports, sip });
    await recovery.endLostProcesses();
    const round = recovery.settleEnds();
    await vi.advanceTimersByTimeAsync(20_000);
    await round;
    expect(tries).toBeGreaterThan(5);
    recovery.stop();
    await vi.advanceTimersByTimeAsync(20_000);
    vi.useRealTimers();

    expect(world.ends.get(one.call.callId)?.published).toBe(false);
    await settleEnds(next.ports);
    await settled();
    expect(next.hungUp).toEqual([one.leg]);
    expect(world.ends.get(one.call.callId)?.published).toBe(true);
  });

  test('says once of a far end that it cannot be reached, and once when it is', async () => {
    vi.useFakeTimers();
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.unfinished.set(one.call.callId, one);
    const next = nextProcess(world);
    const said: unknown[] = [];
    const logger = pino({}, { write: (line) => said.push(JSON.parse(line)) });
    let tries = 0;
    const sip = {
      endOrphan: async () => {
        tries += 1;
        return tries < 10 ? ('unreachable' as const) : ('ended' as const);
      },
    };
    await recoveryOf({ ...next.ports, sip, logger }).endLostProcesses();
    await vi.advanceTimersByTimeAsync(30_000);
    vi.useRealTimers();

    const { callId } = one.call;
    expect(tries).toBe(10);
    expect(said).toMatchObject([
      { msg: 'far end of a lost process', callId, farEnd: 'unreachable' },
      { msg: 'far end of a lost process', callId, farEnd: 'ended' },
    ]);
    expect(said).toHaveLength(2);
  });

  describe('of what was cancelled, and may be answered all the same', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    function ringing(count: number, endOrphan: (leg: StoredLeg) => Promise<OrphanResult>) {
      const world = new DialoutWorld();
      for (let index = 0; index < count; index += 1) {
        const one = left(story(), { leg: { ...storedLeg, transactionId: `leg-${index}` } });
        world.unfinished.set(one.call.callId, one);
      }
      const recovery = recoveryOf({ ...nextProcess(world).ports, sip: { endOrphan } });
      const isDone = () => [...world.ends.values()].every(({ published }) => published);
      const start = async () => {
        await recovery.endLostProcesses();
        void recovery.settleEnds();
        await vi.advanceTimersByTimeAsync(0);
      };
      return { recovery, isDone, start };
    }

    test('asks again until it is known to be over', async () => {
      const results: OrphanResult[] = ['cancelled', 'cancelled', 'ended'];
      let tries = 0;
      const { isDone, start } = ringing(1, async () => {
        tries += 1;
        return results[tries - 1] ?? 'gone';
      });
      await start();
      expect([tries, isDone()]).toEqual([1, false]);

      await vi.advanceTimersByTimeAsync(5_000);

      expect([tries, isDone()]).toEqual([3, true]);
    });

    test('asks no more when no 200 can come any more', async () => {
      let tries = 0;
      const { isDone, start } = ringing(1, async () => {
        tries += 1;
        await new Promise((resolve) => setTimeout(resolve, 500));
        return 'cancelled';
      });
      await start();

      await vi.advanceTimersByTimeAsync(30_000);
      expect(isDone()).toBe(false);
      await vi.advanceTimersByTimeAsync(4_000);
      expect([tries, isDone()]).toEqual([32, true]);
    });

    test('holds up no other far end meanwhile', async () => {
      const asked = new Set<string>();
      const { start } = ringing(250, async ({ transactionId }) => {
        asked.add(transactionId);
        return 'cancelled';
      });
      await start();

      expect(asked.size).toBe(250);
    });

    test('leaves it to the next process when this one stops', async () => {
      const { recovery, isDone, start } = ringing(1, async () => 'cancelled');
      await start();
      recovery.stop();
      await vi.advanceTimersByTimeAsync(60_000);

      expect(isDone()).toBe(false);
    });
  });

  test('leaves alone what is still being hung up here', async () => {
    const world = new DialoutWorld();
    const one = left(story());
    world.unfinished.set(one.call.callId, one);
    const next = nextProcess(world);
    await recoverCalls(next.ports);
    const publishes = world.published.length;
    await settleEnds({ ...next.ports, onTheWire: () => [one.call.callId] });

    expect(world.published).toHaveLength(publishes);
  });

  test('says the times as they were said before', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.unfinished.set(s.call.callId, leftAnswered(s, { unpublished: [s.dialing, s.ringing] }));
    world.put(s.queued);
    await recoverCalls(nextProcess(world).ports);
    await settled();

    const { callConnectTime, ringDurationInMS, connectDurationInMS } = s.answered.data as never;
    for (const event of world.stream.slice(-2))
      expect(event.data).toMatchObject({ callConnectTime, ringDurationInMS, connectDurationInMS });
  });

  test('takes the first ring from the stream where SQL missed it', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.unfinished.set(s.call.callId, left(s));
    world.put(s.queued, s.dialing, s.ringing);
    await recoverCalls(nextProcess(world).ports);

    expect(world.ends.get(s.call.callId)?.event.data.ringDurationInMS).toBe(38_000);
  });

  test('owes no amd_stopped where detection was off or had stopped', async () => {
    const world = new DialoutWorld();
    const off = story({ machineDetection: 'disabled' });
    world.unfinished.set(off.call.callId, leftAnswered(off));
    world.put(off.queued, off.dialing, off.ringing, off.answered);
    await recoverCalls(nextProcess(world).ports);
    await settled();

    expect(told(world.stream).at(-1)).toBe('completed 5/2');
  });

  test('gives no notification numbers to a call that notifies nobody', async () => {
    const world = new DialoutWorld();
    const { notifyUrl: _none, ...request } = acceptedCall().request;
    const call = { ...acceptedCall(), request };
    world.unfinished.set(call.callId, { call, ownerId: 'node-1/old', dialStartedAt: at(0) });
    await recoverCalls(nextProcess(world).ports);
    await settled();

    expect(told(world.stream)).toEqual(['queued 1', 'failed 2']);
  });

  test('one call that cannot be ended does not keep the others, or the start, from going on', async () => {
    const world = new DialoutWorld();
    const [bad, good] = [left(story()), left(story())];
    for (const unfinished of [bad, good]) world.unfinished.set(unfinished.call.callId, unfinished);
    const { ports } = nextProcess(world);
    const { ended, failed } = await recoverCalls({
      ...ports,
      factsOfCall: async (call) => {
        if (call.callId === bad.call.callId) throw new Error('cannot be read');
        return ports.factsOfCall(call);
      },
    });

    expect([ended, failed]).toEqual([1, 1]);
    expect([...world.ends.keys()]).toEqual([good.call.callId]);
  });

  test('a call that died over its second gateway says what came of the first', async () => {
    const world = new DialoutWorld();
    const s = story();
    const attempt = { gateway: 'gw', sipStatus: 503, reason: 'Overloaded', durationMs: 20 };
    const progress = { ...progressOfAccepted(s.call), eventSequence: 2, failedAttempts: [attempt] };
    const second = dialingFact(progress, at(2), 'other').event;
    world.unfinished.set(s.call.callId, left(s, { leg: storedLeg }));
    world.put(s.queued, s.dialing, second);

    await recoverCalls(nextProcess(world).ports);
    await settled();

    expect(told(world.published)).toEqual(['failed 4/1']);
    expect(world.published[0]?.data).toMatchObject({ failedAttempts: [attempt] });
  });

  test('a call that another process ended meanwhile is not told again', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.unfinished.set(s.call.callId, left(s));
    const { ports } = nextProcess(world);
    const slow = {
      ...ports,
      factsOfCall: async (call: AcceptedCall) => {
        const { ends } = ports;
        const progress = { ...progressOfAccepted(call), answeredAt: at(5) };
        await ends.record(progress, endOfRemoteBye(at(30)));
        return [];
      },
    };
    await recoverCalls(slow);
    await settled();

    expect(told(world.published)).toEqual(['completed 2/1']);
  });
});

describe('the end of a call says who is gone', () => {
  const owners = [
    ['this node, before it restarted', 'node-1/old', 'Gateway restarted', 'gateway-restarted'],
    ['another node', 'node-2/old', 'Gateway lost; another node ended the call', 'gateway-lost'],
    ['this very process, which lost it', 'node-1/new', 'Gateway failed', 'gateway-failed'],
  ] as const;
  const end = async (unfinished: UnfinishedCall) => {
    const world = new DialoutWorld();
    world.unfinished.set(unfinished.call.callId, unfinished);
    const recovery = recoveryOf(nextProcess(world).ports);
    await (unfinished.ownerId === 'node-1/new'
      ? recovery.endOwn([unfinished.call.callId])
      : recovery.endLostProcesses());
    await settled();
    return world.stream;
  };

  test.each(owners)('that was up with %s', async (_who, ownerId, reason, amdReason) => {
    const facts = await end(leftAnswered(story(), { ownerId }));

    const amd = { event: 'amd_stopped', reason: amdReason };
    expect(facts.slice(-2)).toMatchObject([
      { type: 'amd', data: { amd } },
      { type: 'completed', data: { reason, reasonCode: 'Gateway-disconnected' } },
    ]);
  });

  test.each([
    ['node-1/old', 'Gateway restarted while the call was being placed'],
    ['node-2/old', 'Gateway lost while the call was being placed; another node ended the call'],
    ['node-1/new', 'Gateway failed while the call was being placed'],
  ])('that was being placed by %s', async (ownerId, reason) => {
    const facts = await end(left(story(), { ownerId }));

    const data = { reason, reasonCode: 'Service Unavailable', outcome: 'unknown' };
    expect(facts.at(-1)).toMatchObject({ type: 'failed', data });
  });
});

describe('ends that SQL holds and the stream may not', () => {
  test('that nobody can publish are left to the next round, however many there are', async () => {
    const world = new DialoutWorld();
    for (let index = 0; index < 60; index += 1) {
      const unfinished = left(story());
      world.unfinished.set(unfinished.call.callId, unfinished);
    }
    world.isPublishing = false;
    await recoverCalls(nextProcess(world).ports);
    let asked = 0;
    const publisher = {
      publish: async () => {
        asked += 1;
        if (asked > 1_000) world.ends.clear();
        throw new Error('too many facts wait for NATS');
      },
    };
    await settleEnds({ ...nextProcess(world).ports, publisher });

    expect(asked).toBeLessThanOrEqual(2 * 60);
    expect([...world.ends.values()].filter(({ published }) => !published)).toHaveLength(60);
  });

  test('of lost processes are not gone on with once this one stops', async () => {
    const world = new DialoutWorld();
    for (let index = 0; index < 60; index += 1) {
      const unfinished = left(story());
      world.unfinished.set(unfinished.call.callId, unfinished);
    }
    const { ports } = nextProcess(world);
    const factsOfCall = async () => {
      recovery.stop();
      return [];
    };
    const recovery = recoveryOf({ ...ports, factsOfCall });
    const { ended } = await recovery.endLostProcesses();

    expect(ended).toBeGreaterThan(0);
    expect(world.unfinished.size).toBe(60 - ended);
    expect(ended).toBeLessThan(60);
  });

  test('are not waited for once the process stops, though NATS is away', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.unfinished.set(s.call.callId, left(s));
    world.isPublishing = false;
    await recoverCalls(nextProcess(world).ports);
    const stopping = new AbortController();
    const round = settleEnds(nextProcess(world).ports, stopping.signal);
    await settled();
    stopping.abort();
    await round;

    expect(world.ends.get(s.call.callId)?.published).toBe(false);
  });
});

describe('calls of this process without a machine', () => {
  test('are ended and hung up; others are left alone', async () => {
    const world = new DialoutWorld();
    const [lost, here] = [leftAnswered(story()), leftAnswered(story())];
    for (const unfinished of [lost, here]) world.unfinished.set(unfinished.call.callId, unfinished);
    const next = nextProcess(world);
    await recoveryOf(next.ports).endOwn([lost.call.callId]);
    await settled();

    expect([...world.ends.keys()]).toEqual([lost.call.callId]);
    expect(next.hungUp).toEqual([lost.leg]);
  });

  test('one that cannot be ended does not hold up the next', async () => {
    const world = new DialoutWorld();
    const [bad, good] = [left(story()), left(story())];
    for (const unfinished of [bad, good]) world.unfinished.set(unfinished.call.callId, unfinished);
    const { ports } = nextProcess(world);
    const factsOfCall = async (call: AcceptedCall) => {
      if (call.callId === bad.call.callId) throw new Error('cannot be read');
      return ports.factsOfCall(call);
    };
    await recoveryOf({ ...ports, factsOfCall }).endOwn([bad.call.callId, good.call.callId]);

    expect([...world.ends.keys()]).toEqual([good.call.callId]);
  });
});
