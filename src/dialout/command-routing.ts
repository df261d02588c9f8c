// Routes a command to its call, which may be in this process, on another node, or still in the
// queue.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { Command, CommandReply } from '../calls/contract/command.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CommandRouting } from '../calls/dialout-ports.ts';
import type { CallCommands } from '../calls/life/call-commands.ts';
import { progressOfAccepted } from '../calls/life/call-events.ts';
import { endBeforeAnswer } from '../calls/life/call-outcome.ts';
import { callHasEnded, refusedBy } from '../calls/life/command-handler.ts';
import type { Clock } from '../calls/ports.ts';
import type { EndRecorder } from './end-recorder.ts';

export type OwnershipLedger = {
  /** @returns undefined if there is no such call */
  ownership(
    callId: CallId,
  ): Promise<
    | { readonly phase: 'queued'; readonly call: AcceptedCall }
    | { readonly phase: 'claimed'; readonly ownerId: string }
    | { readonly phase: 'ended' }
    | undefined
  >;
};

export type CommandRoutingPorts = {
  readonly commands: Pick<CallCommands, 'run'>;
  readonly ledger: OwnershipLedger;
  readonly ends: Pick<EndRecorder, 'recordQueued'>;
  readonly clock: Clock;
  readonly ownerId: string;
  /**
   * Forwards the command to the node that owns the call.
   * @returns undefined if that node didn't reply in time
   */
  readonly askOwner: (
    callId: CallId,
    command: Command,
    askedBy?: string,
  ) => Promise<CommandReply | undefined>;
};

export type NodeCommandRouting = CommandRouting & {
  /**
   * Runs a command that was broadcast to all nodes.
   * @returns undefined if another node has to respond
   */
  runHere(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply | undefined>;
};

type Found = CommandReply | 'unknown' | 'here-soon' | 'elsewhere';

/**
 * How many times we look for a call that this process has claimed but not started yet. Starting a
 * call takes milliseconds, unless the database is slow.
 */
const handOverAttempts = 20;
const handOverPauseMs = 50;

export function createCommandRouting(ports: CommandRoutingPorts): NodeCommandRouting {
  const { commands, ledger, ends, clock, ownerId, askOwner } = ports;

  async function tryToRun(callId: CallId, command: Command, askedBy?: string): Promise<Found> {
    const reply = commands.run(callId, command, askedBy);
    if (reply !== undefined) return await reply;
    const found = await ledger.ownership(callId);
    switch (found?.phase) {
      case undefined:
        return 'unknown';
      case 'ended':
        return replyAfterEnd(command);
      case 'claimed':
        return found.ownerId === ownerId ? 'here-soon' : 'elsewhere';
      case 'queued':
        return await runQueued(found.call, command);
    }
  }

  async function runQueued(call: AcceptedCall, command: Command): Promise<Found> {
    if (command.command !== 'hangup') return refusedBy('queued', command);
    const end = endBeforeAnswer({ by: 'application' }, clock.now());
    const isCancelled = await ends.recordQueued(progressOfAccepted(call), end);
    // If we couldn't cancel it, some process has just claimed the call, so look it up again.
    return isCancelled ? doneReply(command, 'ending') : 'here-soon';
  }

  async function tryUntilFound(callId: CallId, command: Command, askedBy?: string): Promise<Found> {
    for (let attempt = 1; attempt <= handOverAttempts; attempt += 1) {
      const found = await tryToRun(callId, command, askedBy);
      if (found !== 'here-soon') return found;
      await pause(handOverPauseMs);
    }
    return 'unknown';
  }

  return {
    async run(callId, command, askedBy) {
      const found = await tryUntilFound(callId, command, askedBy);
      if (found === 'unknown' || found === 'here-soon') return undefined;
      return found === 'elsewhere' ? await askOwner(callId, command, askedBy) : found;
    },
    async runHere(callId, command, askedBy) {
      const found = await tryUntilFound(callId, command, askedBy);
      return typeof found === 'string' ? undefined : found;
    },
  };
}

function doneReply({ id }: Command, state: string): CommandReply {
  return { ok: true, state, ...(id === undefined ? {} : { commandId: id }) };
}

/**
 * Returns the reply for a call that has ended. A hang-up command succeeds, because its goal has
 * been reached.
 */
function replyAfterEnd(command: Command): CommandReply {
  return command.command === 'hangup' ? doneReply(command, 'ended') : callHasEnded;
}
