// Whatever happens to a call, in whatever order: it ends in bounded time, exactly once, with a
// complete series of events, and leaves nothing open. Each run has one seed, and a failure names
// it.

import { describe, expect, test } from 'vitest';
import type { CallEvent } from '../../../src/calls/contract/call-event.ts';
import { selectedEventTypes, typesWithStatus } from '../../../src/calls/contract/notify-events.ts';
import { queuedEvent } from '../../../src/calls/life/call-events.ts';
import { grammarFault } from '../../amd/grammar-check.ts';
import { randomCall, randomOf } from '../../support/random-call.ts';

const runs = 400;
const stepsOfRun = 30;

/** Whether all events of the call are notified. */
const selectsAll = (seed: number): boolean => seed % 2 === 0;

async function play(seed: number) {
  const random = randomOf(seed);
  const notifyEvents = selectsAll(seed) ? selectedEventTypes : [];
  const played = randomCall(random, { hasStreams: true, notifyEvents });
  const { call } = played;
  await call.settle();
  for (let steps = 0; steps < stepsOfRun && !played.isOver(); steps += 1) await played.step();
  await played.finish();
  return { call, leg: played.leg() };
}

async function expectToEndWell(seed: number): Promise<string> {
  const { call, leg } = await play(seed);
  // The events of the machine begin after `queued`. They are in the order in which SQL got them.
  const story = call.stored;

  expect(call.actor.getSnapshot().status).toBe('done');
  expect(call.endings()).toHaveLength(1);
  expect(new Set(story.map(({ id }) => id)).size).toBe(story.length);
  expect(story.map((event) => event.eventSequence)).toEqual(story.map((_, index) => index + 2));
  expect(/completed|failed/.test(story.at(-1)?.type ?? '')).toBe(true);
  expect(
    story.filter((event) => event.type === 'completed' || event.type === 'failed'),
  ).toHaveLength(1);
  const whole = [queuedEvent(call.actor.getSnapshot().context.progress.call), ...story];
  const notified = whole.filter(({ data }) => data.notificationSequence !== undefined);
  expect(notified.map(({ data }) => data.notificationSequence)).toEqual(
    notified.map((_, index) => index + 1),
  );
  const hasStatus = ({ type }: CallEvent) => typesWithStatus.some((known) => known === type);
  expect(notified).toEqual(selectsAll(seed) ? whole : whole.filter(hasStatus));
  expect(story.some((event) => event.type === 'answered')).toBe(story.at(-1)?.type === 'completed');
  const detected = story.flatMap((event) => (event.type === 'amd' ? [event.data.amd] : []));
  if (detected.length > 0) {
    expect(grammarFault(detected.map((event) => ({ ...event, elapsedMs: 0 })))?.split('-')[0]).toBe(
      undefined,
    );
  }
  const times = story.slice(0, -1).map((event) => event.time);
  expect(times.every((time) => time <= (story.at(-1)?.time ?? ''))).toBe(true);
  // The end of a stream that a command began is emitted once, whatever happened to it.
  const overStreams = story.flatMap(({ type, data }) => {
    const { commandId, willRetry = false } = data as { commandId?: string; willRetry?: boolean };
    const isEnd = type === 'stream-stopped' || (type === 'stream-failed' && !willRetry);
    return isEnd && commandId !== undefined ? [commandId] : [];
  });
  expect(new Set(overStreams).size).toBe(overStreams.length);
  expect(overStreams).toHaveLength(call.actor.getSnapshot().context.streaming.streamsBegun);
  // `CallMachineContext` says why none may be larger.
  const { context } = call.actor.getSnapshot();
  for (const members of [context, context.progress]) {
    expect(Object.keys(members).length).toBeLessThanOrEqual(19);
  }
  // Everything that was begun is closed: the port is given back, and the leg is cancelled, hung up
  // or over by itself.
  if (call.log.some((entry) => entry.startsWith('media')))
    expect(call.log).toContain('media closed');
  if (leg !== 'idle') expect(leg).toBe('over');
  return story.at(-1)?.type ?? '';
}

describe('a call to which anything happens, in any order', () => {
  test('ends once, with a complete series of events and nothing left open', {
    timeout: 60_000,
  }, async () => {
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= runs; seed += 1) {
      try {
        const end = await expectToEndWell(seed);
        ends.set(end, (ends.get(end) ?? 0) + 1);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
    // Both kinds of end must be common, or the runs would show little.
    expect(Math.min(ends.get('completed') ?? 0, ends.get('failed') ?? 0)).toBeGreaterThan(
      runs / 10,
    );
  });
});
