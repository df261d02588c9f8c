// A process dies in the middle of a call, at any point: of what the machine stated, the stream had stored any first part,
// and SQL what it had answered for, or a little more. Whatever the next process makes of it must be one whole story.

import { describe, expect, test } from 'vitest';
import { queuedFact } from '../../src/calls/call-facts.ts';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { StoredAnswer, UnfinishedCall } from '../../src/calls/ports.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Recovery, type RecoveryPorts } from '../../src/recovery/recovery.ts';
import { grammarFault } from '../amd/grammar-check.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';
import { randomCall, randomOf } from '../support/random-call.ts';
import { acceptedCall, storedLeg } from '../support/scripted-call.ts';

const runs = 400;
const recoveryOf = (ports: RecoveryPorts) => new Recovery(ports, 'node-1/new');
const recoverCalls = (ports: RecoveryPorts) => recoveryOf(ports).endLostProcesses();
const settleEnds = (ports: RecoveryPorts, until?: AbortSignal) =>
  recoveryOf(ports).settleEnds(until);

/** A publisher as ours: the facts of a call in order, each confirmed when the stream has it. */
function lazyStream(first: CallEvent) {
  const world = new DialoutWorld();
  const waiting: { readonly event: CallEvent; readonly confirm: () => void }[] = [
    { event: first, confirm: () => undefined },
  ];
  return {
    world,
    publish: (event: CallEvent) => new Promise<void>((confirm) => waiting.push({ event, confirm })),
    /** The stream stores some more; of the last one the confirmation may be lost. */
    store(count: number, isLastConfirmed: boolean): void {
      for (const [index, { event, confirm }] of waiting.splice(0, count).entries()) {
        world.put(event);
        if (isLastConfirmed || index < count - 1) confirm();
      }
    },
  };
}

async function crash(seed: number) {
  const random = randomOf(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const stream = lazyStream(queuedFact(acceptedCall()));
  const { world } = stream;
  const played = randomCall(random, { publish: (event) => stream.publish(event) });
  const { call } = played;
  await call.settle();
  const isStreamAway = random() < 0.2;
  const steps = below(25);
  for (let done = 0; done < steps && !played.isOver(); done += 1) {
    await played.step();
    if (!isStreamAway && random() < 0.5) stream.store(below(4), true);
  }
  await call.settle();
  stream.store(isStreamAway ? 0 : below(4), false);

  const row = call.actor.getSnapshot().context.call;
  const [end] = call.claimed;
  const unfinished = unfinishedOf(row, {
    ringing: call.log.includes('recordRinging'),
    // Not told to the process, it may stand all the same.
    answer: call.log.includes('ack') || random() < 0.5 ? call.answers[0] : undefined,
    at: call.now(),
  });
  if (end === undefined) world.unfinished.set(row.callId, unfinished);
  else {
    const published = world.stream.some((event) => event.id === end.event.id);
    world.ends.set(row.callId, { ...end, published });
  }
  call.actor.stop();
  return { world, row, random };
}

function unfinishedOf(
  call: AcceptedCall,
  sql: {
    readonly ringing: boolean;
    readonly answer: StoredAnswer | undefined;
    readonly at: Date;
  },
): UnfinishedCall {
  const { answer } = sql;
  return {
    call,
    ownerId: 'node-1/old',
    dialStartedAt: call.acceptedAt,
    leg: storedLeg,
    ...(sql.ringing ? { ringingAt: sql.at } : {}),
    ...(answer === undefined
      ? {}
      : {
          answeredAt: answer.at,
          answeredEvent: answer.event,
          unpublished: answer.unpublished,
        }),
  };
}

function nextProcess(world: DialoutWorld, at: Date): RecoveryPorts {
  const { ledger, publisher } = world;
  const logger = silentLogger;
  return {
    ledger,
    publisher,
    logger,
    factsOfCall: async (call) => world.factsOf(call.callId),
    onTheWire: () => [],
    sip: {
      endOrphan: async () => 'ended',
    },
    ends: createEndRecorder({ ledger, publisher, logger }),
    clock: { now: () => at },
  };
}

async function expectOneWholeStory(seed: number): Promise<string> {
  const { world, row, random } = await crash(seed);
  const before = [...world.stream];
  const at = new Date(row.acceptedAt.getTime() + 1_000_000);
  // The next process may die too, before its facts are on the stream.
  if (random() < 0.3) {
    world.isPublishing = false;
    await recoverCalls(nextProcess(world, at));
    await settled();
    world.isPublishing = true;
  }
  await recoverCalls(nextProcess(world, at));
  await settleEnds(nextProcess(world, at));
  await settled();

  const story = world.factsOf(row.callId);
  expect(story.slice(0, before.length)).toEqual(before);
  expect(story.map((fact) => fact.eventSequence)).toEqual(story.map((_, index) => index + 1));
  const notified = story.flatMap(
    (fact) => (fact.data as { notificationSequence?: number }).notificationSequence ?? [],
  );
  expect(notified).toEqual(notified.map((_, index) => index + 1));
  const ends = story.filter((fact) => fact.type === 'completed' || fact.type === 'failed');
  expect(ends).toEqual(story.slice(-1));
  expect(story.some((fact) => fact.type === 'answered')).toBe(ends[0]?.type === 'completed');
  for (const fact of world.published) expect(story).toContainEqual(fact);
  const detected = story.flatMap((fact) => (fact.type === 'amd' ? [fact.data.amd] : []));
  if (detected.length > 0) {
    expect(grammarFault(detected.map((event) => ({ ...event, elapsedMs: 0 })))).toBeUndefined();
  }
  return ends[0]?.type ?? '';
}

describe('a process that dies in the middle of a call', () => {
  test('leaves a story that the next one brings to its one end, without a gap', {
    timeout: 60_000,
  }, async () => {
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= runs; seed += 1) {
      try {
        const end = await expectOneWholeStory(seed);
        ends.set(end, (ends.get(end) ?? 0) + 1);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
    // Both kinds of end are common, or the runs would show little.
    expect(Math.min(ends.get('completed') ?? 0, ends.get('failed') ?? 0)).toBeGreaterThan(
      runs / 10,
    );
  });
});
