// Commands at both doors find their call wherever it is, and are answered by the process that has it alone.

import { describe, expect, test } from 'vitest';
import type { Command, CommandReply } from '../../src/calls/contract/command.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { ControlLedger } from '../../src/dialout/call-control.ts';
import { createCommandRouting } from '../../src/dialout/command-routing.ts';
import { acceptedCall } from '../support/call-records.ts';

const call = acceptedCall();
const { callId } = call;
const stop: Command = { command: 'stop', id: 'one' };
const hangup: Command = { command: 'hangup', id: 'two' };
const done: CommandReply = { ok: true, commandId: 'one', state: 'answered' };

function rig(
  ownership: ControlLedger['ownership'],
  {
    here,
    owner,
    cancelled = 'ending',
  }: {
    readonly here?: () => Promise<CommandReply> | undefined;
    readonly owner?: CommandReply;
    readonly cancelled?: 'ending';
  } = {},
) {
  const asked: [CallId, Command, string | undefined][] = [];
  const routing = createCommandRouting({
    commands: { run: () => here?.() },
    ledger: { ownership },
    control: { endHere: async () => cancelled },
    ownerId: 'node-1/a',
    askOwner: async (asksCall, command, askedBy) => {
      asked.push([asksCall, command, askedBy]);
      return owner;
    },
  });
  return { asked, routing };
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

  test('that waits in the queue: it may be cancelled, and nothing else', async () => {
    const { routing } = rig(async () => ({ phase: 'queued', call }));

    expect(await routing.run(callId, hangup)).toEqual({
      ok: true,
      state: 'ending',
      commandId: 'two',
    });
    expect(await routing.runHere(callId, stop)).toEqual({
      ok: false,
      code: 'state',
      error: 'The call is queued; stop needs one that is answered.',
    });
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
});
