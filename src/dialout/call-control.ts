// Ends a call wherever it is in its life: queued, ringing, answered; here, or at the node that has it.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallControl } from '../calls/dialout-ports.ts';
import { progressOfAccepted } from '../calls/life/call-events.ts';
import { endBeforeAnswer } from '../calls/life/call-outcome.ts';
import type { CallRegistry } from '../calls/life/call-registry.ts';
import type { NoteCommand } from '../calls/life/command-notes.ts';
import type { Clock } from '../calls/ports.ts';
import type { EndRecorder } from './end-recorder.ts';

export type ControlLedger = {
  /** Undefined: no such call. */
  ownership(
    callId: CallId,
  ): Promise<
    | { readonly phase: 'queued'; readonly call: AcceptedCall }
    | { readonly phase: 'claimed'; readonly ownerId: string }
    | { readonly phase: 'ended' }
    | undefined
  >;
};

export type ControlPorts = {
  readonly ledger: ControlLedger;
  readonly registry: CallRegistry;
  readonly ends: EndRecorder;
  readonly clock: Clock;
  readonly ownerId: string;
  /** Asks the node that has the call. False: none of them answered in time. */
  readonly askOwner: (callId: CallId, askedBy?: string) => Promise<boolean>;
  /** For who looks into the call. */
  readonly note?: NoteCommand;
};

export type NodeCallControl = CallControl & {
  /** For a command that every node hears. Undefined: another node has the call. */
  endHere(callId: CallId): Promise<'ending' | 'ended' | undefined>;
};

type Found = 'ending' | 'ended' | 'unknown' | 'here-soon' | 'elsewhere';

export function createCallControl(ports: ControlPorts): NodeCallControl {
  const command = { by: 'application' } as const;

  async function tryToEnd(callId: CallId, by = 'unknown'): Promise<Found> {
    if (ports.registry.end(callId, command)) {
      ports.note?.(callId, { kind: 'command', at: Date.now(), what: 'hangup', by, tookMs: 0 });
      return 'ending';
    }
    const found = await ports.ledger.ownership(callId);
    switch (found?.phase) {
      case undefined:
        return 'unknown';
      case 'ended':
        return 'ended';
      case 'claimed':
        return found.ownerId === ports.ownerId ? 'here-soon' : 'elsewhere';
      case 'queued': {
        const end = endBeforeAnswer(command, ports.clock.now());
        const progress = progressOfAccepted(found.call);
        // Not cancelled: a process has claimed it in this very moment.
        return (await ports.ends.recordQueued(progress, end)) ? 'ending' : 'here-soon';
      }
    }
  }

  async function tryUntilFound(callId: CallId, askedBy?: string): Promise<Found> {
    for (let attempt = 1; attempt <= handOverAttempts; attempt += 1) {
      const found = await tryToEnd(callId, askedBy);
      if (found !== 'here-soon') return found;
      await pause(handOverPauseMs);
    }
    return 'unknown';
  }

  return {
    async end(callId, askedBy) {
      const found = await tryUntilFound(callId, askedBy);
      if (found === 'ending' || found === 'ended') return found;
      if (found !== 'elsewhere') return 'unknown';
      return (await ports.askOwner(callId, askedBy)) ? 'ending' : 'unreachable';
    },
    async endHere(callId) {
      const found = await tryUntilFound(callId);
      return found === 'ending' || found === 'ended' ? found : undefined;
    },
  };
}

/** A worker has claimed the call and not started its machine yet: milliseconds, unless SQL is slow. */
export const handOverAttempts = 20;
export const handOverPauseMs = 50;
