// Recovers a call after its process has died, using only what SQL and the stream hold. Expects one
// complete timeline and exactly one hang-up for each far end that may still be in the call.

import { expect } from 'vitest';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Recovery } from '../../src/recovery/recovery.ts';
import { grammarFault } from '../amd/grammar-check.ts';
import { type DialoutWorld, settled } from './dialout-world.ts';
import type { MortalOutbox } from './mortal-outbox.ts';

const notRecorded = 'The answer could not be recorded';

export type CrashedCall = {
  readonly world: DialoutWorld;
  readonly outbox: MortalOutbox;
  readonly row: ReturnType<DialoutWorld['row']>;
  readonly random: () => number;
};

function nextProcess(world: DialoutWorld, ownerId: string, at: Date, hungUp: StoredLeg[] = []) {
  world.takeOver(ownerId);
  const { outbox, publish, settle, noteLegsGone, holds } = world.process(ownerId);
  const recovery = new Recovery(
    {
      ...{ ledger: world.ledger, outbox, publish, settle, noteLegsGone, isUnderWay: holds },
      logger: silentLogger,
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

async function recover({ world, outbox, row, random }: CrashedCall) {
  const at = new Date(row.call.acceptedAt.getTime() + 1_000_000);
  const hungUpBefore: StoredLeg[] = [];
  // The next process may die too, either before it begins or when all ends are in SQL but only some
  // are on the stream.
  if (random() < 0.3) {
    world.isPublishing = random() < 0.5;
    const dying = nextProcess(world, 'node-2/next', at, hungUpBefore);
    if (random() < 0.7) await dying.endTakenOver();
    if (random() < 0.5) void dying.settleEnds();
    if (random() < 0.5) await settled();
    dying.stop();
    world.isPublishing = true;
  }
  const hungUp: StoredLeg[] = [];
  const last = nextProcess(world, 'node-1/new', at, hungUp);
  const left = new Set(row.isSettled ? [] : sipCallIdsOf([...row.legs.values()]));
  // A late statement of the lost process arrives. That process no longer owns the call.
  if (random() < 0.3) outbox.commit();
  await last.endTakenOver();
  if (random() < 0.3) outbox.commit();
  await last.settleEnds();
  await settled();
  // Recovery hangs up each far end that may be left in the call once, as found in SQL.
  const ids = sipCallIdsOf(hungUp);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(expect.arrayContaining([...left]));
  return { left: left.size, hungUp: [...sipCallIdsOf(hungUpBefore), ...ids] };
}

function sipCallIdsOf(legs: readonly StoredLeg[]): readonly string[] {
  return legs.map(({ sipCallId }) => sipCallId);
}

/**
 * Expects one complete timeline for the call, no matter what the next process does. If that one
 * dies too, the process after it must complete the timeline.
 */
export async function expectOneWholeStory(crashed: CrashedCall) {
  const { world, row } = crashed;
  const before = [...world.stream];
  const committed = [...world.timelineOf(row.call.callId)];
  const { left, hungUp } = await recover(crashed);

  const story = world.timelineOf(row.call.callId);
  // Events stored or published before the crash mustn't change.
  expect(story.slice(0, committed.length)).toEqual(committed);
  expect(world.stream.slice(0, before.length)).toEqual(before);
  expect(world.stream).toEqual(story);
  for (const event of world.published) expect(story).toContainEqual(event);

  expect(story.map((event) => event.eventSequence)).toEqual(story.map((_, index) => index + 1));
  const notified = story.flatMap(({ data }) => data.notificationSequence ?? []);
  expect(notified).toEqual(notified.map((_, index) => index + 1));
  // If a call selects events, all its events are notified.
  if ((row.call.request.notifyEvents ?? []).length > 0) expect(notified).toHaveLength(story.length);
  const ends = story.filter(({ type }) => type === 'completed' || type === 'failed');
  expect(ends).toEqual(story.slice(-1));
  expect(row).toMatchObject({ end: ends[0], isSettled: true });
  // Only SQL decides whether the call was answered.
  const isAnswered = row.answeredAt !== undefined;
  expect(story.some(({ type }) => type === 'answered')).toBe(isAnswered);
  expect(ends[0]?.type).toBe(isAnswered ? 'completed' : 'failed');
  const detected = story.flatMap((event) => (event.type === 'amd' ? [event.data.amd] : []));
  if (detected.length > 0) {
    expect(grammarFault(detected.map((event) => ({ ...event, elapsedMs: 0 })))).toBeUndefined();
  }
  const { data } = row.end ?? {};
  const isDoubted = data !== undefined && 'reason' in data && data.reason === notRecorded;
  return { hungUp, left, end: `${isDoubted ? 'doubted, ' : ''}${row.end?.type}` };
}
