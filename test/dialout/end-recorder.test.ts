import { describe, expect, test } from 'vitest';
import { dialingEvent, progressOfAccepted } from '../../src/calls/life/call-events.ts';
import { endOfExpiry, endOfUnknown } from '../../src/calls/life/call-outcome.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { acceptedCall, storedLeg } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const at = new Date('2026-03-01T12:00:00.000Z');
const own = 'node-1/a';

function rig() {
  const world = new DialoutWorld();
  const call = acceptedCall();
  world.accept(call);
  const counted: string[] = [];
  const ends = createEndRecorder(world.process(own).outbox, ({ outcome }) => counted.push(outcome));
  return { world, call, ends, counted, progress: progressOfAccepted(call) };
}

const types = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type);

describe('the end of a call without a machine', () => {
  test('is stored with the missing events before any of them is published', async () => {
    const { world, call, ends, progress } = rig();
    world.take(call.callId, own);
    world.isPublishing = false;
    const dialing = dialingEvent(progress, at, 'gw');
    const stored = { ...progress, eventSequence: dialing.eventSequence };
    const end = endOfUnknown('restarted', at);

    expect(await ends.record(stored, end, [dialing.event], { isRecovered: false })).toBe(true);
    expect(types(world.timelineOf(call.callId))).toEqual(['queued', 'dialing', 'failed']);
    expect(world.endOf(call.callId)).toMatchObject({
      type: 'failed',
      data: { outcome: 'unknown' },
    });
    expect([world.stream, world.row(call.callId).isSettled]).toEqual([[], false]);
    world.resumePublishing();
    await settled();

    expect(types(world.stream)).toEqual(['dialing', 'failed']);
    expect(world.row(call.callId).isSettled).toBe(true);
  });

  test('is stored and published once, however many processes record it', async () => {
    const { world, call, ends, counted, progress } = rig();
    world.take(call.callId, own);
    const how = { isRecovered: false };
    const recorded = await Promise.all([
      ends.record(progress, endOfUnknown('restarted', at), [], how),
      ends.record(progress, endOfExpiry(at), [], how),
    ]);
    await settled();

    expect(recorded).toEqual([true, false]);
    expect(counted).toEqual(['unknown']);
    expect(world.published.map(({ data }) => data)).toMatchObject([{ outcome: 'unknown' }]);
  });

  test('is not settled while a far end may be left in the call', async () => {
    const { world, call, ends, progress } = rig();
    world.leave({
      ...{ call, ownerId: 'node-1/old', legs: [storedLeg] },
      events: world.timelineOf(call.callId),
    });
    world.takeOver(own);
    await ends.record(progress, endOfUnknown('restarted', at), [], { isRecovered: true });
    await settled();

    expect(await world.ledger.unsettledEnds(own, [], 10)).toMatchObject([
      { call, legs: [storedLeg] },
    ]);
  });

  test('is not recorded if another process has taken the call over', async () => {
    const { world, call, ends, progress } = rig();
    world.take(call.callId, own);
    world.takeOver('node-2/b');
    const end = endOfUnknown('failed', at);

    expect(await ends.record(progress, end, [], { isRecovered: false })).toBe(false);
    expect(world.ended()).toEqual([]);
  });

  test('is recorded for a queued call that no process has taken', async () => {
    const { world, call, ends, progress } = rig();
    expect(await ends.recordQueued(progress, endOfExpiry(at))).toBe(true);
    await settled();

    expect(types(world.timelineOf(call.callId))).toEqual(['queued', 'failed']);
    expect(types(world.published)).toEqual(['failed']);
  });

  test('is not recorded for a queued call once a process has taken it, or it has ended', async () => {
    const { world, call, ends, progress } = rig();
    world.take(call.callId, 'node-2/b');
    expect(await ends.recordQueued(progress, endOfExpiry(at))).toBe(false);

    const other = rig();
    await other.ends.recordQueued(other.progress, endOfExpiry(at));
    const later = new Date(at.getTime() + 1_000);
    expect(await other.ends.recordQueued(other.progress, endOfExpiry(later))).toBe(false);
    expect(other.counted).toEqual(['expired']);
    expect(world.published).toEqual([]);
  });
});
