// Commands at both doors find their call wherever it is, and are answered by the process that has it alone.

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
  test('of this process is done here, at either door, without a look into SQL', async () => {
    const { asked, routing } = rig(() => Promise.reject(new Error('not asked')), {
      here: async () => done,
    });

    expect(await routing.run(callId, stop)).toEqual(done);
    expect(await routing.runHere(callId, stop)).toEqual(done);
    expect(asked).toEqual([]);
  });

  test('of another one goes there from HTTP, with its id, and is left to it on NATS', async () => {
    const { asked, routing } = rig(async () => ({ phase: 'claimed', ownerId: 'node-2/b' }), {
      owner: done,
    });

    expect(await routing.run(callId, stop, 'app-1')).toEqual(done);
    expect(await routing.runHere(callId, stop)).toBeUndefined();
    expect(asked).toEqual([[callId, stop, 'app-1']]);
  });

  test('whose process does not answer: it is not known', async () => {
    const { routing } = rig(async () => ({ phase: 'claimed', ownerId: 'node-2/b' }));

    expect(await routing.run(callId, stop)).toBeUndefined();
    expect(await routing.run(callId, hangup)).toBeUndefined();
  });

  test('that this process is just about to start waits for it', async () => {
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

  test('that waits in the queue: a hang-up states its whole end, and no process dials it', async () => {
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

  test('that waits in the queue takes no other command', async () => {
    const { world, routing } = rig(async () => ({ phase: 'queued', call }));

    expect(await routing.runHere(callId, stop)).toEqual({
      ok: false,
      code: 'state',
      error: 'The call is queued; stop needs an answered call.',
    });
    expect(world.ended()).toEqual([]);
  });

  test('that a worker claims in that very moment: its machine is told as soon as it is there', async () => {
    let isHere = false;
    const told: Command[] = [];
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
          told.push(command);
          return Promise.resolve({ ok: true, state: 'ending' });
        },
      },
    );

    expect(await routing.run(callId, { command: 'hangup' })).toEqual({ ok: true, state: 'ending' });
    expect(told).toEqual([{ command: 'hangup' }]);
    expect(world.ended()).toEqual([]);
  });

  test('that has ended is refused, but for a hang-up, whose wish is so', async () => {
    const { routing } = rig(async () => ({ phase: 'ended' }));

    expect(await routing.run(callId, stop)).toMatchObject({ ok: false, code: 'ended' });
    expect(await routing.runHere(callId, { command: 'hangup' })).toEqual({
      ok: true,
      state: 'ended',
    });
  });

  test('that never was is not answered', async () => {
    const { routing } = rig(async () => undefined);

    expect(await routing.run(callId, stop)).toBeUndefined();
    expect(await routing.runHere(callId, stop)).toBeUndefined();
  });

  test('while SQL is unreachable: the sender is told', async () => {
    const { routing } = rig(() => Promise.reject(new Error('SQL is unreachable')));

    await expect(routing.run(callId, hangup)).rejects.toThrow('SQL is unreachable');
  });
});
