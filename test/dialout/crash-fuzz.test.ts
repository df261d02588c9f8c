// A process dies in the middle of a call, at any point: of what the machine stated, SQL had committed any first part, of which
// the process may not have heard, and the stream had any first part of that. Whatever the next process makes of it, and the one
// after that if it dies too, must be one whole story.

import { describe, expect, test } from 'vitest';
import { queuedEvent } from '../../src/calls/call-events.ts';
import { defaultCallLimits } from '../../src/calls/call-setup.ts';
import { type CallStep, fold } from '../../src/calls/call-step.ts';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { CallOutbox, StepResult } from '../../src/calls/ports.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Recovery } from '../../src/recovery/recovery.ts';
import { grammarFault } from '../amd/grammar-check.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';
import { randomCall, randomOf } from '../support/random-call.ts';
import { acceptedCall } from '../support/scripted-call.ts';

const runs = 400;
const old = 'node-1/old';
const notRecorded = 'The answer could not be recorded';

type Entry = { readonly step: CallStep; readonly tell: (result: StepResult) => void };

/** An outbox as ours: one step waits, one is under way. What SQL does with that one, and when, is up to the test. */
class MortalOutbox implements CallOutbox {
  readonly #world: DialoutWorld;
  readonly #call: AcceptedCall;
  #waiting: Entry | undefined;
  #underWay: Entry | undefined;
  #result: { readonly events: readonly CallEvent[] | undefined } | undefined;
  /** Stored, and not on the stream. */
  readonly #unpublished: CallEvent[];
  #publishedThrough = 0;

  constructor(world: DialoutWorld, call: AcceptedCall) {
    this.#world = world;
    this.#call = call;
    this.#unpublished = [queuedEvent(call)];
  }

  append(_call: AcceptedCall, step: CallStep): Promise<StepResult> {
    return new Promise((tell) => {
      this.#waiting = merged(this.#waiting, { step, tell });
    });
  }

  /** Of an answer that the machine waits for. */
  holdsAnswer(): boolean {
    return [this.#waiting, this.#underWay].some((entry) => entry?.step.answeredAt !== undefined);
  }

  /** A statement leaves. */
  begin(): void {
    if (this.#underWay !== undefined) return;
    this.#underWay = this.#waiting;
    this.#waiting = undefined;
  }

  commit(): void {
    if (this.#underWay === undefined || this.#result !== undefined) return;
    const how = { publishedThrough: this.#publishedThrough };
    const events = this.#world.append(old, this.#call, this.#underWay.step, how);
    this.#result = { events };
  }

  /** The process hears that it is stored. */
  confirm(): void {
    if (this.#underWay === undefined || this.#result === undefined) return;
    const { events } = this.#result;
    this.#unpublished.push(...(events ?? []));
    this.#underWay.tell(events === undefined ? 'not ours' : 'stored');
    this.#underWay = undefined;
    this.#result = undefined;
  }

  /** The connection breaks, before the statement or after it: it is tried again, with what came meanwhile. */
  fail(): void {
    if (this.#underWay === undefined) return;
    this.#waiting = merged(this.#underWay, this.#waiting);
    this.#underWay = undefined;
    this.#result = undefined;
  }

  /** The stream stores some more; of the last one the confirmation may be lost. */
  publish(count: number, isLastConfirmed: boolean): void {
    const events = this.#unpublished.splice(0, count);
    this.#world.put(...events);
    const confirmed = isLastConfirmed ? events.at(-1) : events.at(-2);
    this.#publishedThrough = confirmed?.eventSequence ?? this.#publishedThrough;
  }
}

function merged(earlier: Entry | undefined, later: Entry | undefined): Entry | undefined {
  if (earlier === undefined || later === undefined) return earlier ?? later;
  const tell = (result: StepResult): void => {
    earlier.tell(result);
    later.tell(result);
  };
  return { step: fold(earlier.step, later.step), tell };
}

/** What SQL and the stream make of a call, some of it at a time. */
function playInfrastructure(outbox: MortalOutbox, random: () => number) {
  const below = (limit: number) => Math.floor(random() * limit);
  const [isSqlAway, isStreamAway, isSwift] = [random() < 0.1, random() < 0.2, random() < 0.5];
  const storeAll = (): void => {
    for (const does of ['begin', 'commit', 'confirm'] as const) outbox[does]();
  };
  const publish = (isLastConfirmed: boolean): void => {
    if (!isStreamAway) outbox.publish(below(4), isLastConfirmed);
  };
  const happenings: readonly (() => void)[] = [
    ...[storeAll, () => outbox.begin(), () => outbox.commit(), () => outbox.confirm()],
    ...[() => outbox.fail(), () => publish(true)],
  ];
  let stallsAtAnswer = !isSqlAway && random() < 0.4;
  return {
    goOn(): void {
      if (isSqlAway) return;
      for (let count = below(5); count > 0; count -= 1) happenings[below(happenings.length)]?.();
      if (isSwift) storeAll();
    },
    /** True, at most once: an answer is not told of any more, whether SQL has it or not. */
    stallsNow(): boolean {
      if (!stallsAtAnswer || !outbox.holdsAnswer()) return false;
      stallsAtAnswer = false;
      outbox.begin();
      if (random() < 0.5) outbox.commit();
      return true;
    },
    /** The last moment: a statement under way may be committed, though nobody hears of it. */
    end(): void {
      publish(false);
      if (!isSqlAway && random() < 0.5) outbox.commit();
    },
  };
}

async function crash(seed: number) {
  const random = randomOf(seed);
  const world = new DialoutWorld();
  // The machine's call is this one too: its id is the same each time.
  const first = acceptedCall();
  world.accept(first);
  world.take(first.callId, old);
  const outbox = new MortalOutbox(world, first);
  const played = randomCall(random, { outbox });
  const { call } = played;
  await call.settle();
  const infrastructure = playInfrastructure(outbox, random);
  const steps = Math.floor(random() * 40);
  for (let done = 0; done < steps && !played.isOver(); done += 1) {
    await played.step();
    if (infrastructure.stallsNow()) {
      call.advance(defaultCallLimits.storeAnswerTimeoutMs);
      await call.settle();
    }
    infrastructure.goOn();
    if (random() < 0.5) await call.settle();
  }
  infrastructure.end();
  call.actor.stop();
  return { world, outbox, row: world.row(first.callId), random };
}

function nextProcess(world: DialoutWorld, ownerId: string, at: Date, hungUp: StoredLeg[] = []) {
  world.takeOver(ownerId);
  const { outbox, publish, settle, holds } = world.process(ownerId);
  const recovery = new Recovery(
    {
      ...{ ledger: world.ledger, outbox, publish, settle, isUnderWay: holds, logger: silentLogger },
      eventsOnStream: async () => [],
      underWay: () => [],
      sip: {
        endOrphan: async (leg) => {
          hungUp.push(leg);
          return 'ended';
        },
      },
      ends: createEndRecorder(outbox),
      clock: { now: () => at },
    },
    ownerId,
  );
  return recovery;
}

async function recover({ world, outbox, row, random }: Awaited<ReturnType<typeof crash>>) {
  const at = new Date(row.call.acceptedAt.getTime() + 1_000_000);
  // The next process may die too: before it has begun, or when it has the ends in SQL and some of them on the stream.
  if (random() < 0.3) {
    world.isPublishing = random() < 0.5;
    const dying = nextProcess(world, 'node-2/next', at);
    if (random() < 0.7) await dying.endTakenOver();
    if (random() < 0.5) void dying.settleEnds();
    if (random() < 0.5) await settled();
    dying.stop();
    world.isPublishing = true;
  }
  const hungUp: StoredLeg[] = [];
  const last = nextProcess(world, 'node-1/new', at, hungUp);
  const left = new Set(row.isSettled ? [] : sipCallIdsOf([...row.legs.values()]));
  // A statement of the lost process arrives at last: it has no call any more.
  if (random() < 0.3) outbox.commit();
  await last.endTakenOver();
  if (random() < 0.3) outbox.commit();
  await last.settleEnds();
  await settled();
  // Each far end that may be left in the call is hung up once, by what SQL holds.
  const ids = sipCallIdsOf(hungUp);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(expect.arrayContaining([...left]));
  return left.size;
}

function sipCallIdsOf(legs: readonly StoredLeg[]): readonly string[] {
  return legs.map(({ sipCallId }) => sipCallId);
}

async function expectOneWholeStory(seed: number) {
  const crashed = await crash(seed);
  const { world, row } = crashed;
  const before = [...world.stream];
  const committed = [...world.timelineOf(row.call.callId)];
  const left = await recover(crashed);

  const story = world.timelineOf(row.call.callId);
  // What was stored, or heard of, stands.
  expect(story.slice(0, committed.length)).toEqual(committed);
  expect(world.stream.slice(0, before.length)).toEqual(before);
  expect(world.stream).toEqual(story);
  for (const event of world.published) expect(story).toContainEqual(event);

  expect(story.map((event) => event.eventSequence)).toEqual(story.map((_, index) => index + 1));
  const notified = story.flatMap(
    (event) => (event.data as { notificationSequence?: number }).notificationSequence ?? [],
  );
  expect(notified).toEqual(notified.map((_, index) => index + 1));
  const ends = story.filter(({ type }) => type === 'completed' || type === 'failed');
  expect(ends).toEqual(story.slice(-1));
  expect(row).toMatchObject({ end: ends[0], isSettled: true });
  // Whether it was answered is what SQL holds, and nothing else.
  const isAnswered = row.answeredAt !== undefined;
  expect(story.some(({ type }) => type === 'answered')).toBe(isAnswered);
  expect(ends[0]?.type).toBe(isAnswered ? 'completed' : 'failed');
  const detected = story.flatMap((event) => (event.type === 'amd' ? [event.data.amd] : []));
  if (detected.length > 0) {
    expect(grammarFault(detected.map((event) => ({ ...event, elapsedMs: 0 })))).toBeUndefined();
  }
  const { data } = row.end ?? {};
  const isDoubted = data !== undefined && 'reason' in data && data.reason === notRecorded;
  return { end: `${isDoubted ? 'doubted, ' : ''}${row.end?.type}`, left };
}

describe('a process that dies in the middle of a call', () => {
  test('leaves a story that the next one brings to its one end, without a gap', {
    timeout: 60_000,
  }, async () => {
    const ends = new Map<string, number>();
    let bridged = 0;
    for (let seed = 1; seed <= runs; seed += 1) {
      try {
        const { end, left } = await expectOneWholeStory(seed);
        ends.set(end, (ends.get(end) ?? 0) + 1);
        if (left === 2) bridged += 1;
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
    // Both kinds of end are common, or the runs would show little; so are answers that were given up.
    expect(Math.min(ends.get('completed') ?? 0, ends.get('failed') ?? 0)).toBeGreaterThan(
      runs / 10,
    );
    expect(bridged).toBeGreaterThan(runs / 100);
    expect(ends.get('doubted, completed')).toBeGreaterThan(runs / 100);
    expect(ends.get('doubted, failed')).toBeGreaterThan(runs / 100);
  });
});
