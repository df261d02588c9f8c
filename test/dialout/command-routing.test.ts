// Commands from HTTP and NATS find their call wherever it is. Only the process that has the call
// answers.

import { describe, expect, test } from 'vitest';
import type { Command, CommandReply } from '../../src/calls/contract/command.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { createCommandRouting, type OwnershipLedger } from '../../src/dialout/command-routing.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { acceptedCall } from '../support/call-records.ts';
import { DialoutWorld, settled } from '../support/dialout-world.ts';

const call = acceptedCall();
const { callId } = call;
const stop: Command = { command: 'stop', id: 'one' };
const hangup: Command = { command: 'hangup', id: 'two' };
const done: CommandReply = { ok: true, commandId: 'one', state: 'answered' };

function rig(
  ownership: OwnershipLedger['ownership'],
  {
    here,
    owner,
  }: {
    readonly here?: (command: Command) => Promise<CommandReply> | undefined;
    readonly owner?: CommandReply;
  } = {},
) {
  const asked: [CallId, Command, string | undefined][] = [];
  const world = new DialoutWorld();
  world.accept(call);
  const routing = createCommandRouting({
    commands: { run: (_callId, command) => here?.(command) },
    ledger: { ownership },
    ends: createEndRecorder(world.process('node-1/a').outbox),
    clock: { now: () => new Date('2026-03-01T12:00:00.000Z') },
    ownerId: 'node-1/a',
    askOwner: async (asksCall, command, askedBy) => {
      asked.push([asksCall, command, askedBy]);
      return owner;
    },
  });
  return { asked, world, routing };
}

describe('a command to a call', () => {
  test('of this process runs here, from HTTP and NATS, without a query to SQL', async () => {
    const { asked, routing } = rig(() => Promise.reject(new Error('not asked')), {
      here: async () => done,
    });

    expect(await routing.run(callId, stop)).toEqual(done);
    expect(await routing.runHere(callId, stop)).toEqual(done);
    expect(asked).toEqual([]);
  });

  test('of another process is forwarded from HTTP with its id, and ignored on NATS', async () => {
    const { asked, routing } = rig(async () => ({ phase: 'claimed', ownerId: 'node-2/b' }), {
      owner: done,
    });

    expect(await routing.run(callId, stop, 'app-1')).toEqual(done);
    expect(await routing.runHere(callId, stop)).toBeUndefined();
    expect(asked).toEqual([[callId, stop, 'app-1']]);
  });

  test('has no reply if the process of the call does not answer', async () => {
    const { routing } = rig(async () => ({ phase: 'claimed', ownerId: 'node-2/b' }));

    expect(await routing.run(callId, stop)).toBeUndefined();
    expect(await routing.run(callId, hangup)).toBeUndefined();
  });

  test('waits for a call that this process is about to start', async () => {
    let isHere = false;
    const { routing } = rig(
      async () => {
        setTimeout(() => {
          isHere = true;
        }, 1);
        return { phase: 'claimed', ownerId: 'node-1/a' };
      },
      { here: () => (isHere ? Promise.resolve(done) : undefined) },
    );

    expect(await routing.run(callId, stop)).toEqual(done);
  });

  test('ends a queued call with a hang-up, and no process dials it', async () => {
    const { world, routing } = rig(async () => ({ phase: 'queued', call }));

    expect(await routing.run(callId, hangup)).toEqual({
      ok: true,
      state: 'ending',
      commandId: 'two',
    });
    await settled();
    const timeline = world.timelineOf(callId);
    expect(timeline.map(({ type, eventSequence }) => [type, eventSequence])).toEqual([
      ['queued', 1],
      ['failed', 2],
    ]);
    expect(world.endOf(callId)?.data).toMatchObject({
      outcome: 'cancelled',
      reason: 'Cancelled by the application',
      notificationSequence: 1,
    });
  });

  test('is refused for a queued call unless it is a hang-up', async () => {
    const { world, routing } = rig(async () => ({ phase: 'queued', call }));

    expect(await routing.runHere(callId, stop)).toEqual({
      ok: false,
      code: 'state',
      error: 'The call is queued; stop needs an answered call.',
    });
    expect(world.ended()).toEqual([]);
  });

  test('reaches the machine of a call that is claimed at that moment', async () => {
    let isHere = false;
    const received: Command[] = [];
    const { world, routing } = rig(
      async () => {
        world.take(callId, 'node-1/a');
        setTimeout(() => {
          isHere = true;
        }, 1);
        return { phase: 'queued', call };
      },
      {
        here: (command) => {
          if (!isHere) return undefined;
          received.push(command);
          return Promise.resolve({ ok: true, state: 'ending' });
        },
      },
    );

    expect(await routing.run(callId, { command: 'hangup' })).toEqual({ ok: true, state: 'ending' });
    expect(received).toEqual([{ command: 'hangup' }]);
    expect(world.ended()).toEqual([]);
  });

  test('is refused for a call that has ended, unless it is a hang-up', async () => {
    const { routing } = rig(async () => ({ phase: 'ended' }));

    expect(await routing.run(callId, stop)).toMatchObject({ ok: false, code: 'ended' });
    expect(await routing.runHere(callId, { command: 'hangup' })).toEqual({
      ok: true,
      state: 'ended',
    });
  });

  test('has no reply for a call that never existed', async () => {
    const { routing } = rig(async () => undefined);

    expect(await routing.run(callId, stop)).toBeUndefined();
    expect(await routing.runHere(callId, stop)).toBeUndefined();
  });

  test('reports to the sender that SQL is unreachable', async () => {
    const { routing } = rig(() => Promise.reject(new Error('SQL is unreachable')));

    await expect(routing.run(callId, hangup)).rejects.toThrow('SQL is unreachable');
  });
});
