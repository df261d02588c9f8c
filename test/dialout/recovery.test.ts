// A process dies. The next process has only what the dead one had put into SQL and on the stream by
// then. For every point of death the events must be complete, in SQL and on the stream: no gap in
// the sequences and exactly one end. The same must hold if the next process dies too.

import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AcceptedCall, DialoutRequest } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { exampleEvent } from '../../src/calls/contract/event-examples.ts';
import type { LegEndResult, StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { amdEvent } from '../../src/calls/detection/detection-events.ts';
import {
  answeredEvent,
  type CallProgress,
  dialingEvent,
  type NextEvent,
  nextEvent,
  progressOfAccepted,
  queuedEvent,
  ringingEvent,
} from '../../src/calls/life/call-events.ts';
import { endOfRemoteBye } from '../../src/calls/life/call-outcome.ts';
import type { UnfinishedCall } from '../../src/calls/ports.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Recovery, type RecoveryPorts } from '../../src/recovery/recovery.ts';
import { acceptedCall, endEventOf, storedLeg } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const at = (second: number) => new Date(Date.UTC(2026, 2, 1, 10, 0, second));
const now = at(40);
const recoveryOf = (ports: RecoveryPorts) => new Recovery(ports, 'node-1/new');
const recoverCalls = (ports: RecoveryPorts) => recoveryOf(ports).endTakenOver();
const settleEnds = (ports: RecoveryPorts, until?: AbortSignal) =>
  recoveryOf(ports).settleEnds(until);

/**
 * Events of a call as the dead process stored them: every event up to `amd_human_detected` and a
 * digit.
 */
function story(request: Partial<DialoutRequest> = {}) {
  const base = acceptedCall();
  const call: AcceptedCall = { ...base, request: { ...base.request, ...request } };
  let progress: CallProgress = progressOfAccepted(call);
  const tell = <Event extends CallEvent>({ event, ...sequences }: NextEvent<Event>): Event => {
    progress = { ...progress, ...sequences };
    return event;
  };
  const human: AmdEvent = { event: 'amd_human_detected', reason: 'short', elapsedMs: 900 };
  const queued = queuedEvent(call);
  progress = { ...progress, sentAt: at(1) };
  const dialing = tell(dialingEvent(progress, at(1), 'gw'));
  progress = { ...progress, ringingAt: at(2) };
  const response = { sipStatus: 180, sipReason: 'Ringing', earlyMedia: false };
  const ringing = tell(ringingEvent(progress, at(2), response));
  const answeredAt = at(5);
  progress = { ...progress, answeredAt };
  const answered = tell(answeredEvent({ ...progress, answeredAt }));
  progress = { ...progress, amdEvents: [human] };
  const amd = tell(amdEvent({ ...progress, answeredAt }, at(6), human));
  const dtmf = tell(nextEvent(progress, 'dtmf', at(7), { digit: '5', source: 'rtp' }));
  return { call, queued, dialing, ringing, answered, amd, dtmf };
}
type Story = ReturnType<typeof story>;

/** A process that has taken over what is left. `onStream`: true if it can read the stream. */
function nextProcess(world: DialoutWorld, { onStream = false } = {}) {
  const ownerId = 'node-1/new';
  const hungUp: StoredLeg[] = [];
  world.takeOver(ownerId);
  const { outbox, publish, settle, noteLegsGone, holds } = world.process(ownerId);
  const ports: RecoveryPorts = {
    ...{ ledger: world.ledger, outbox, publish, settle, noteLegsGone, isUnderWay: holds },
    logger: silentLogger,
    eventsOnStream: async (call) => (onStream ? world.eventsOf(call.callId) : []),
    underWay: () => [],
    sip: {
      endOrphan: async (leg) => {
        hungUp.push(leg);
        return 'ended';
      },
    },
    ends: createEndRecorder(outbox),
    clock: { now: () => now },
  };
  return { hungUp, ports };
}

function left(history: Story, more: Partial<UnfinishedCall> = {}): UnfinishedCall {
  return {
    ...{ call: history.call, ownerId: 'node-1/old', events: [history.queued] },
    legs: [],
    ...more,
  };
}

function leftDialing(history: Story, more: Partial<UnfinishedCall> = {}): UnfinishedCall {
  return left(history, { legs: [storedLeg], events: [history.queued, history.dialing], ...more });
}

function leftRinging(history: Story, more: Partial<UnfinishedCall> = {}): UnfinishedCall {
  const events = [history.queued, history.dialing, history.ringing];
  return left(history, { legs: [storedLeg], ringingAt: at(2), events, ...more });
}

function leftAnswered(history: Story, more: Partial<UnfinishedCall> = {}): UnfinishedCall {
  return leftRinging(history, {
    legs: [{ ...storedLeg, dialogId: 'dialog-1' }],
    answeredAt: at(5),
    events: [history.queued, history.dialing, history.ringing, history.answered],
    ...more,
  });
}

function sequencesOf({ eventSequence, data }: CallEvent) {
  const { notificationSequence = 0 } = data as { notificationSequence?: number };
  return { eventSequence, notificationSequence };
}

/** Returns each event as `type sequence/notification`. */
function summaryOf(events: readonly CallEvent[]): readonly string[] {
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
  ['taken, with nothing on the stream', left, () => [], ['queued 1', 'failed 2/1']],
  ['taken', left, (s) => [s.queued], ['failed 2/1']],
  [
    'taken over while it was dialled: only the leg was stored',
    (s) => left(s, { legs: [storedLeg] }),
    (s) => [s.queued],
    ['failed 2/1'],
  ],
  ['dialing', leftDialing, (s) => [s.queued, s.dialing], ['failed 3/1']],
  ['dialing, not published', leftDialing, (s) => [s.queued], ['dialing 2', 'failed 3/1']],
  ['ringing', leftRinging, (s) => [s.queued, s.dialing, s.ringing], ['failed 4/1']],
  [
    'ringing, with the stream unreachable all the time',
    leftRinging,
    () => [],
    ['queued 1', 'dialing 2', 'ringing 3', 'failed 4/1'],
  ],
  [
    'answer stored, `answered` not published',
    leftAnswered,
    (s) => [s.queued, s.dialing, s.ringing],
    ['answered 4/1', 'amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'answer stored, half of the events before it published',
    leftAnswered,
    (s) => [s.queued, s.dialing],
    ['ringing 3', 'answered 4/1', 'amd_stopped 5/2', 'completed 6/3'],
  ],
  [
    'answer stored, with the stream unreachable all the time',
    leftAnswered,
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
    'a person was detected and pressed a digit, which was not stored',
    (s) => leftAnswered(s, { events: [s.queued, s.dialing, s.ringing, s.answered, s.amd] }),
    (s) => [s.queued, s.dialing, s.ringing, s.answered, s.amd],
    ['amd_stopped 6/3', 'completed 7/4'],
  ],
  [
    'a person was detected and pressed a digit',
    (s) => leftAnswered(s, { events: [s.queued, s.dialing, s.ringing, s.answered, s.amd, s.dtmf] }),
    (s) => [s.queued, s.dialing, s.ringing, s.answered],
    ['amd_human_detected 5/2', 'dtmf 6', 'amd_stopped 7/3', 'completed 8/4'],
  ],
];

/** Points of death after a backup of SQL was restored: the stream has the events since then. */
const restoredCrashPoints: readonly CrashPoint[] = [
  ['taken', left, (s) => [s.queued, s.dialing], ['failed 3/1']],
  ['dialing', leftDialing, (s) => [s.queued, s.dialing, s.ringing], ['failed 4/1']],
  [
    'answered',
    leftAnswered,
    (s) => [s.queued, s.dialing, s.ringing, s.answered, s.amd, s.dtmf],
    ['amd_stopped 7/3', 'completed 8/4'],
  ],
];

describe.each([
  ...crashPoints.map((point) => ['died', false, ...point] as const),
  ...restoredCrashPoints.map((point) => ['died before SQL was restored', true, ...point] as const),
])('a process %s when (%s): %s', (_who, isRestored, _what, sql, stream, expected) => {
  function crashed() {
    const world = new DialoutWorld();
    const before = story();
    const unfinished = sql(before);
    world.leave(unfinished);
    world.put(...stream(before));
    const next = () => nextProcess(world, { onStream: isRestored }).ports;
    return { world, before, callId: unfinished.call.callId, had: world.stream.length, next };
  }

  test('publishes what is owed, in order and without a gap', async () => {
    const { world, callId, had, next } = crashed();
    const ports = next();
    await recoverCalls(ports);
    await settleEnds(ports);
    await settled();

    expect(summaryOf(world.stream.slice(had))).toEqual(expected);
    expectWhole(world.stream);
    expect(world.timelineOf(callId)).toEqual(world.stream);
    expect(world.row(callId).isSettled).toBe(true);
  });

  test('a second recovery adds nothing', async () => {
    const { world, next } = crashed();
    await recoverCalls(next());
    await settleEnds(next());
    await settled();
    const story = [...world.stream];
    const publishes = world.published.length;
    const again = await recoverCalls(next());
    await settleEnds(next());

    expect(again.ended).toBe(0);
    expect(world.published).toHaveLength(publishes);
    expect(world.stream).toEqual(story);
  });

  test('the next recovery finishes one that dies before it publishes', async () => {
    const { world, had, next } = crashed();
    world.isPublishing = false;
    await recoverCalls(next());
    world.isPublishing = true;
    await recoverCalls(next());
    await settleEnds(next());

    expect(summaryOf(world.stream.slice(had))).toEqual(expected);
    expectWhole(world.stream);
  });

  test('the next recovery finishes one that dies while it publishes, with the same bodies', async () => {
    const { world, callId, had, next } = crashed();
    world.isPublishing = false;
    const dying = next();
    await recoverCalls(dying);
    void settleEnds(dying);
    await settled();
    const first = world.published[0];
    expect(first).toBeDefined();
    if (first !== undefined) world.put(first);
    world.isPublishing = true;
    await settleEnds(next());
    await settled();

    expect(summaryOf(world.stream.slice(had))).toEqual(expected);
    for (const event of world.published) expect(world.stream).toContainEqual(event);
    expect(world.row(callId).isSettled).toBe(true);
  });

  test('the stream drops by id what the dead process had sent and it stored late', async () => {
    const { world, before, next } = crashed();
    const { events } = sql(before);
    await recoverCalls(next());
    await settleEnds(next());
    await settled();
    world.put(...events);

    expectWhole(world.stream);
  });
});

describe('when SQL was restored from a backup', () => {
  test('a call that had ended ends the same way, because receivers have that end', async () => {
    const world = new DialoutWorld();
    const before = story();
    world.leave(leftAnswered(before));
    const ended = endEventOf(before.call);
    world.put(before.queued, before.dialing, before.ringing, before.answered, ended);
    const next = nextProcess(world, { onStream: true });

    expect(await recoverCalls(next.ports)).toEqual({ ended: 1, failed: 0 });
    await settleEnds(nextProcess(world).ports);
    await settled();

    expect(world.row(before.call.callId)).toMatchObject({ end: ended, isSettled: true });
    expect(world.published).toContainEqual(ended);
    expect(world.stream).toHaveLength(5);
    expect(next.hungUp).toHaveLength(1);
  });
});

describe('the recovery', () => {
  test('hangs up the far ends of stored legs', async () => {
    const world = new DialoutWorld();
    const [one, other] = [leftAnswered(story()), left(story())];
    for (const unfinished of [one, other]) world.leave(unfinished);
    const next = nextProcess(world);
    const { ended } = await recoverCalls(next.ports);
    await settleEnds(next.ports);
    await settled();

    expect(ended).toBe(2);
    // The recovery hangs up, and so does the part that settles the ends. Here they are two
    // processes.
    expect(new Set(next.hungUp)).toEqual(new Set(one.legs));
    expect(world.rows().every(({ isSettled }) => isSettled)).toBe(true);
  });

  test('hangs up while NATS is unreachable, and settles the call when both have succeeded', async () => {
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.leave(one);
    world.isPublishing = false;
    const next = nextProcess(world);
    await recoverCalls(next.ports);
    const settling = settleEnds(next.ports);
    await settled();

    expect(new Set(next.hungUp)).toEqual(new Set(one.legs));
    expect(world.row(one.call.callId).isSettled).toBe(false);
    world.resumePublishing();
    await settling;
    await settled();
    expect(world.row(one.call.callId).isSettled).toBe(true);
  });

  test('hangs up even if the events of a call cannot be read', async () => {
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.leave(one);
    const next = nextProcess(world);
    const eventsOnStream = () => Promise.reject(new Error('NATS is unreachable'));
    const { failed } = await recoverCalls({ ...next.ports, eventsOnStream });

    expect(failed).toBe(1);
    expect(next.hungUp).toEqual(one.legs);
  });

  test.each<[string, Partial<RecoveryPorts>]>([
    ['be stored', { eventsOnStream: () => Promise.reject(new Error('unreachable')) }],
    ['be published', { publish: () => Promise.reject(new Error('unreachable')) }],
  ])(
    'hangs up each far end once at a time, even while the end cannot %s',
    async (_what, broken) => {
      const world = new DialoutWorld();
      const one = leftAnswered(story());
      world.leave(one);
      const { ports } = nextProcess(world);
      const asked: StoredLeg[] = [];
      const sip = {
        endOrphan: (leg: StoredLeg) => {
          asked.push(leg);
          return new Promise<LegEndResult>(() => undefined);
        },
      };
      const recovery = recoveryOf({ ...ports, sip, ...broken });
      for (let sweep = 1; sweep <= 3; sweep += 1) {
        await recovery.endTakenOver();
        await recovery.settleEnds();
        await settled();
      }

      expect(asked).toEqual(one.legs);
    },
  );

  test('keeps trying while the SIP engine is unreachable, and leaves the leg to the next process when it stops', async () => {
    vi.useFakeTimers();
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.leave(one);
    const next = nextProcess(world);
    let tries = 0;
    const sip = {
      endOrphan: async () => {
        tries += 1;
        return 'unreachable' as const;
      },
    };
    const recovery = recoveryOf({ ...next.ports, sip });
    await recovery.endTakenOver();
    const settling = recovery.settleEnds();
    await vi.advanceTimersByTimeAsync(20_000);
    await settling;
    expect(tries).toBeGreaterThan(5);
    recovery.stop();
    await vi.advanceTimersByTimeAsync(20_000);
    vi.useRealTimers();

    expect(world.row(one.call.callId).isSettled).toBe(false);
    await settleEnds(next.ports);
    await settled();
    expect(next.hungUp).toEqual(one.legs);
    expect(world.row(one.call.callId).isSettled).toBe(true);
  });

  test('logs once that a far end is unreachable, and once when it is reached', async () => {
    vi.useFakeTimers();
    const world = new DialoutWorld();
    const one = leftAnswered(story());
    world.leave(one);
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
    await recoveryOf({ ...next.ports, sip, logger }).endTakenOver();
    await vi.advanceTimersByTimeAsync(30_000);
    vi.useRealTimers();

    const { callId } = one.call;
    expect(tries).toBe(10);
    expect(said).toMatchObject([
      {
        msg: 'tried to hang up the far end of a call without a process',
        callId,
        farEnd: 'unreachable',
      },
      { msg: 'tried to hang up the far end of a call without a process', callId, farEnd: 'ended' },
    ]);
    expect(said).toHaveLength(2);
  });

  describe('with a cancelled leg that may still be answered', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    function ringing(count: number, endOrphan: (leg: StoredLeg) => Promise<LegEndResult>) {
      const world = new DialoutWorld();
      for (let index = 0; index < count; index += 1) {
        const one = left(story(), { legs: [{ ...storedLeg, transactionId: `leg-${index}` }] });
        world.leave(one);
      }
      const recovery = recoveryOf({ ...nextProcess(world).ports, sip: { endOrphan } });
      const isDone = () => world.rows().every(({ isSettled }) => isSettled);
      const start = async () => {
        await recovery.endTakenOver();
        void recovery.settleEnds();
        await vi.advanceTimersByTimeAsync(0);
      };
      return { recovery, isDone, start };
    }

    test('tries again until the leg is known to be over', async () => {
      const results: LegEndResult[] = ['cancelled', 'cancelled', 'ended'];
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

    test('stops trying when no 200 can come any more', async () => {
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

    test('does not hold up other far ends meanwhile', async () => {
      const asked = new Set<string>();
      const { start } = ringing(250, async ({ transactionId }) => {
        asked.add(transactionId);
        return 'cancelled';
      });
      await start();

      expect(asked.size).toBe(250);
    });

    test('leaves the leg to the next process when this one stops', async () => {
      const { recovery, isDone, start } = ringing(1, async () => 'cancelled');
      await start();
      recovery.stop();
      await vi.advanceTimersByTimeAsync(60_000);

      expect(isDone()).toBe(false);
    });
  });

  test('leaves calls alone whose legs are being hung up here, or whose events are still being stored or published', async () => {
    const world = new DialoutWorld();
    const [wire, way] = [leftRinging(story()), leftRinging(story())];
    for (const unfinished of [wire, way]) world.leave(unfinished);
    const next = nextProcess(world);
    await recoverCalls(next.ports);
    await settled();
    await settleEnds({
      ...next.ports,
      underWay: () => [wire.call.callId],
      isUnderWay: (callId) => callId === way.call.callId,
    });
    expect(world.rows().map(({ isSettled }) => isSettled)).toEqual([false, false]);

    await settleEnds(next.ports);
    await settled();
    expect(world.rows().map(({ isSettled }) => isSettled)).toEqual([true, true]);
  });

  test('repeats the times of earlier events', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.leave(leftAnswered(s));
    const { ports } = nextProcess(world);
    await recoverCalls(ports);
    await settleEnds(ports);
    await settled();

    expect(summaryOf(world.stream)).toHaveLength(6);

    const { callConnectTime, ringDurationInMS, connectDurationInMS } = s.answered.data as never;
    for (const event of world.stream.slice(-2))
      expect(event.data).toMatchObject({ callConnectTime, ringDurationInMS, connectDurationInMS });
  });

  test('takes the first ring from the events if the row has no time for it', async () => {
    const world = new DialoutWorld();
    const s = story();
    const { ringingAt: _, ...unfinished } = leftRinging(s);
    world.leave(unfinished);
    world.put(s.queued, s.dialing, s.ringing);
    await recoverCalls(nextProcess(world).ports);

    expect(world.endOf(s.call.callId)?.data.ringDurationInMS).toBe(38_000);
  });

  test('owes no amd_stopped if detection was off', async () => {
    const world = new DialoutWorld();
    const off = story({ machineDetection: 'disabled' });
    world.leave(leftAnswered(off));
    await recoverCalls(nextProcess(world).ports);

    expect(summaryOf(world.timelineOf(off.call.callId)).at(-1)).toBe('completed 5/2');
  });

  test('owes no amd_stopped if detection had stopped', async () => {
    const world = new DialoutWorld();
    const s = story();
    const amd: AmdEvent = { event: 'amd_stopped', reason: 'human', elapsedMs: 1_000 };
    const progress = { ...progressOfAccepted(s.call), ...sequencesOf(s.answered) };
    const stopped = amdEvent(
      { ...progress, answeredAt: at(5), amdEvents: [amd] },
      at(6),
      amd,
    ).event;
    world.leave(leftAnswered(s, { events: [s.queued, s.dialing, s.ringing, s.answered, stopped] }));
    await recoverCalls(nextProcess(world).ports);

    expect(summaryOf(world.timelineOf(s.call.callId)).slice(-2)).toEqual([
      'amd_stopped 5/2',
      'completed 6/3',
    ]);
  });

  test('continues the notification numbers of selected events, without repeating them in the end', async () => {
    const world = new DialoutWorld();
    const s = story({ notifyEvents: ['queued', 'dtmf', 'transfer-failed'] });
    const { request: _, ...identity } = s.call;
    const transfer = exampleEvent('transfer-failed', {
      ...{ identity, eventSequence: 7, notificationSequence: 5 },
    });
    const events = [s.queued, s.dialing, s.ringing, s.answered, s.amd, s.dtmf, transfer];
    world.leave(leftAnswered(s, { events }));
    await recoverCalls(nextProcess(world).ports);

    expect(summaryOf(world.timelineOf(s.call.callId))).toEqual([
      ...['queued 1/1', 'dialing 2', 'ringing 3', 'answered 4/2', 'amd_human_detected 5/3'],
      ...['dtmf 6/4', 'transfer-failed 7/5', 'amd_stopped 8/6', 'completed 9/7'],
    ]);
    const end = world.endOf(s.call.callId)?.data as { readonly transfer?: object };
    expect(Object.keys(end.transfer ?? {})).toEqual([
      'commandId',
      'to',
      'mode',
      'outcome',
      'sipStatus',
    ]);
  });

  test('gives no notification numbers to a call without a receiver', async () => {
    const world = new DialoutWorld();
    const { notifyUrl: _none, ...request } = acceptedCall().request;
    const call = { ...acceptedCall(), request };
    const events = [queuedEvent(call)];
    world.leave({ call, ownerId: 'node-1/old', legs: [], events });
    await recoverCalls(nextProcess(world).ports);

    expect(summaryOf(world.timelineOf(call.callId))).toEqual(['queued 1', 'failed 2']);
  });

  test('a call that cannot be ended does not hold up the others or the start', async () => {
    const world = new DialoutWorld();
    const [bad, good] = [left(story()), left(story())];
    for (const unfinished of [bad, good]) world.leave(unfinished);
    const { ports } = nextProcess(world);
    const { ended, failed } = await recoverCalls({
      ...ports,
      eventsOnStream: async (call) => {
        if (call.callId === bad.call.callId) throw new Error('cannot be read');
        return ports.eventsOnStream(call);
      },
    });

    expect([ended, failed]).toEqual([1, 1]);
    expect(world.ended()).toEqual([good.call.callId]);
  });

  test('reports the failed first attempt of a call that died on its second gateway', async () => {
    const world = new DialoutWorld();
    const s = story();
    const attempt = { gateway: 'gw', sipStatus: 503, reason: 'Overloaded', durationMs: 20 };
    const progress = { ...progressOfAccepted(s.call), eventSequence: 2, failedAttempts: [attempt] };
    const second = dialingEvent(progress, at(2), 'other').event;
    world.leave(leftDialing(s, { events: [s.queued, s.dialing, second] }));

    await recoverCalls(nextProcess(world).ports);

    expect(summaryOf(world.timelineOf(s.call.callId)).at(-1)).toBe('failed 4/1');
    expect(world.endOf(s.call.callId)?.data).toMatchObject({ failedAttempts: [attempt] });
  });

  test('does not report the end of a call again that ended here meanwhile', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.leave(left(s));
    const { ports } = nextProcess(world);
    const slow = {
      ...ports,
      eventsOnStream: async (call: AcceptedCall) => {
        const progress = { ...progressOfAccepted(call), answeredAt: at(5) };
        await ports.ends.record(progress, endOfRemoteBye({ at: at(30) }), [], {
          isRecovered: false,
        });
        return [];
      },
    };
    await recoverCalls(slow);
    await settled();

    expect(summaryOf(world.timelineOf(s.call.callId))).toEqual(['queued 1', 'completed 2/1']);
    expect(summaryOf(world.published.slice(-1))).toEqual(['completed 2/1']);
  });

  test('leaves a call to a third process that took it over meanwhile', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.leave(left(s));
    const { ports } = nextProcess(world);
    const eventsOnStream = async () => {
      world.takeOver('node-2/third');
      return [];
    };
    await recoverCalls({ ...ports, eventsOnStream });

    expect(world.ended()).toEqual([]);
    expect(await world.ledger.unfinished('node-2/third', 'taken over', 10)).toMatchObject([
      { call: s.call, ownerId: 'node-1/new' },
    ]);
  });
});

describe('the end of a call names the lost process', () => {
  const owners = [
    ['this node, before it restarted', 'node-1/old', 'Gateway restarted', 'gateway-restarted'],
    ['another node', 'node-2/old', 'Gateway lost; another node ended the call', 'gateway-lost'],
    ['this very process, which lost it', 'node-1/new', 'Gateway failed', 'gateway-failed'],
  ] as const;
  const end = async (unfinished: UnfinishedCall) => {
    const world = new DialoutWorld();
    world.leave(unfinished);
    const recovery = recoveryOf(nextProcess(world).ports);
    await (unfinished.ownerId === 'node-1/new'
      ? recovery.endOwn([unfinished.call.callId])
      : recovery.endTakenOver());
    return world.timelineOf(unfinished.call.callId);
  };

  test.each(owners)('for a call that was up with %s', async (_who, ownerId, reason, amdReason) => {
    const events = await end(leftAnswered(story(), { ownerId }));

    const amd = { event: 'amd_stopped', reason: amdReason };
    expect(events.slice(-2)).toMatchObject([
      { type: 'amd', data: { amd } },
      { type: 'completed', data: { reason, reasonCode: 'Gateway-disconnected' } },
    ]);
  });

  test.each([
    ['node-1/old', 'Gateway restarted while the call was being placed'],
    ['node-2/old', 'Gateway lost while the call was being placed; another node ended the call'],
    ['node-1/new', 'Gateway failed while the call was being placed'],
  ])('for a call that was being placed by %s', async (ownerId, reason) => {
    const events = await end(left(story(), { ownerId }));

    const data = { reason, reasonCode: 'Service Unavailable', outcome: 'unknown' };
    expect(events.at(-1)).toMatchObject({ type: 'failed', data });
  });
});

describe('ends that SQL has but the stream may lack', () => {
  test('are left to the next sweep if they cannot be published, however many there are', async () => {
    const world = new DialoutWorld();
    for (let index = 0; index < 60; index += 1) {
      const unfinished = left(story());
      world.leave(unfinished);
    }
    world.isPublishing = false;
    await recoverCalls(nextProcess(world).ports);
    let asked = 0;
    const publish = async () => {
      asked += 1;
      if (asked > 1_000) for (const row of world.rows()) row.isSettled = true;
      throw new Error('too many events wait for NATS');
    };
    await settleEnds({ ...nextProcess(world).ports, publish });

    expect(asked).toBeLessThanOrEqual(2 * 60);
    expect(world.rows().filter(({ isSettled }) => !isSettled)).toHaveLength(60);
  });

  test('of lost processes are not continued once this process stops', async () => {
    const world = new DialoutWorld();
    for (let index = 0; index < 60; index += 1) {
      const unfinished = left(story());
      world.leave(unfinished);
    }
    const { ports } = nextProcess(world);
    const eventsOnStream = async () => {
      recovery.stop();
      return [];
    };
    const recovery = recoveryOf({ ...ports, eventsOnStream });
    const { ended } = await recovery.endTakenOver();

    expect(ended).toBeGreaterThan(0);
    expect(world.ended()).toHaveLength(ended);
    expect(ended).toBeLessThan(60);
  });

  test('are not awaited once the process stops, even if NATS is unreachable', async () => {
    const world = new DialoutWorld();
    const s = story();
    world.leave(left(s));
    world.isPublishing = false;
    await recoverCalls(nextProcess(world).ports);
    const stopping = new AbortController();
    const settling = settleEnds(nextProcess(world).ports, stopping.signal);
    await settled();
    stopping.abort();
    await settling;

    expect(world.row(s.call.callId).isSettled).toBe(false);
  });
});

describe('calls of this process without a machine', () => {
  test('are ended and hung up; others are left alone', async () => {
    const world = new DialoutWorld();
    const own = { ownerId: 'node-1/new' };
    const [lost, here] = [leftAnswered(story(), own), leftAnswered(story(), own)];
    for (const unfinished of [lost, here]) world.leave(unfinished);
    const next = nextProcess(world);
    await recoveryOf(next.ports).endOwn([lost.call.callId]);
    await settled();

    expect(world.ended()).toEqual([lost.call.callId]);
    expect(next.hungUp).toEqual(lost.legs);
  });

  test('do not hold up the next call if one cannot be ended', async () => {
    const world = new DialoutWorld();
    const [bad, good] = [left(story()), left(story())];
    for (const unfinished of [bad, good]) world.leave(unfinished);
    const { ports } = nextProcess(world);
    const eventsOnStream = async (call: AcceptedCall) => {
      if (call.callId === bad.call.callId) throw new Error('cannot be read');
      return ports.eventsOnStream(call);
    };
    await recoveryOf({ ...ports, eventsOnStream }).endOwn([bad.call.callId, good.call.callId]);

    expect(world.ended()).toEqual([good.call.callId]);
  });
});
