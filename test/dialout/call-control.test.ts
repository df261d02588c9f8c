import { describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { CallRegistry } from '../../src/calls/life/call-registry.ts';
import { type ControlLedger, createCallControl } from '../../src/dialout/call-control.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { acceptedCall } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const call = acceptedCall();
const now = new Date('2026-03-01T12:00:00.000Z');

function rig(ownership: ControlLedger['ownership'], ownerAnswers = true) {
  const asked: CallId[] = [];
  const world = new DialoutWorld();
  const here = new Set<CallId>();
  const commands: CallId[] = [];
  const registry = {
    end: (callId: CallId) => {
      if (here.has(callId)) commands.push(callId);
      return here.has(callId);
    },
  } as unknown as CallRegistry;
  world.accept(call);
  const ends = createEndRecorder(world.process('node-1/a').outbox);
  const clock = { now: () => now };
  const control = createCallControl({
    ledger: { ownership },
    registry,
    ends,
    clock,
    ownerId: 'node-1/a',
    askOwner: async (callId) => {
      asked.push(callId);
      return ownerAnswers;
    },
  });
  return { world, here, commands, asked, control };
}

describe('ending a call from outside', () => {
  test('that is up or being dialled here: its machine is told', async () => {
    const { here, commands, control } = rig(() => Promise.reject(new Error('not asked')));
    here.add(call.callId);

    expect(await control.end(call.callId)).toBe('ending');
    expect(commands).toEqual([call.callId]);
  });

  test('that is queued: it has failed, told whole, and no process dials it', async () => {
    const { world, control } = rig(async () => ({ phase: 'queued', call }));

    expect(await control.end(call.callId)).toBe('ending');
    await settled();
    const timeline = world.timelineOf(call.callId);
    expect(timeline.map(({ type, eventSequence }) => [type, eventSequence])).toEqual([
      ['queued', 1],
      ['failed', 2],
    ]);
    expect(world.endOf(call.callId)?.data).toMatchObject({
      outcome: 'cancelled',
      reason: 'Cancelled by the application',
      notificationSequence: 1,
    });
  });

  test('that a worker claims in that very moment: its machine is told as soon as it is there', async () => {
    const { world, here, commands, control } = rig(async () => {
      world.take(call.callId, 'node-1/a');
      setTimeout(() => here.add(call.callId), 1);
      return { phase: 'queued', call };
    });

    expect(await control.end(call.callId)).toBe('ending');
    expect(commands).toEqual([call.callId]);
    expect(world.ended()).toEqual([]);
  });

  test('that had ended, or never was', async () => {
    expect(await rig(async () => ({ phase: 'ended' })).control.end(call.callId)).toBe('ended');
    expect(await rig(async () => undefined).control.end(call.callId)).toBe('unknown');
  });

  test('that another node has: that node is asked', async () => {
    const elsewhere = async () => ({ phase: 'claimed', ownerId: 'node-2/b' }) as const;
    const { asked, control } = rig(elsewhere);

    expect(await control.end(call.callId)).toBe('ending');
    expect(asked).toEqual([call.callId]);
    // It may be up there: that it is unknown would be a lie.
    expect(await rig(elsewhere, false).control.end(call.callId)).toBe('unreachable');
  });

  test('a command that every node hears is answered by the one that has the call', async () => {
    const { here, asked, control } = rig(async () => ({ phase: 'claimed', ownerId: 'node-2/b' }));
    expect(await control.endHere(call.callId)).toBeUndefined();
    here.add(call.callId);
    expect(await control.endHere(call.callId)).toBe('ending');
    expect(asked).toEqual([]);
  });

  test('while SQL is unreachable: the caller is told', async () => {
    const { control } = rig(() => Promise.reject(new Error('SQL is unreachable')));
    await expect(control.end(call.callId)).rejects.toThrow('SQL is unreachable');
  });
});
