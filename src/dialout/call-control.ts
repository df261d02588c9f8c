// Ends a call wherever it is in its life: queued, ringing, answered.

import { progressOfAccepted, queuedFact } from '../calls/call-facts.ts';
import { endBeforeAnswer } from '../calls/call-outcome.ts';
import type { CallRegistry } from '../calls/call-registry.ts';
import type { AcceptedCall, CallId } from '../calls/call-types.ts';
import type { CallControl } from '../calls/dialout-ports.ts';
import type { Clock } from '../calls/ports.ts';
import type { EndRecorder } from './end-recorder.ts';

export type ControlLedger = {
  /** Undefined: no such call. */
  whereabouts(
    callId: CallId,
  ): Promise<
    | { readonly phase: 'queued'; readonly call: AcceptedCall }
    | { readonly phase: 'claimed' | 'ended' }
    | undefined
  >;
};

export function createCallControl(ports: {
  readonly ledger: ControlLedger;
  readonly registry: CallRegistry;
  readonly ends: EndRecorder;
  readonly clock: Clock;
}): CallControl {
  const command = { by: 'application' } as const;

  async function tryToEnd(callId: CallId): Promise<'ending' | 'ended' | 'unknown' | 'elsewhere'> {
    if (ports.registry.end(callId, command)) return 'ending';
    const found = await ports.ledger.whereabouts(callId);
    if (found === undefined) return 'unknown';
    if (found.phase === 'queued') {
      const { call } = found;
      const end = endBeforeAnswer(command, ports.clock.now());
      // Whoever accepted it may have died before this was published. It has one id, and is stored once.
      const missing = [queuedFact(call)];
      const cancelled = await ports.ends.recordQueued(progressOfAccepted(call), end, missing);
      return cancelled ? 'ending' : 'elsewhere';
    }
    return found.phase === 'ended' ? 'ended' : 'elsewhere';
  }

  return {
    async end(callId) {
      for (let attempt = 1; attempt <= handOverAttempts; attempt += 1) {
        const result = await tryToEnd(callId);
        if (result !== 'elsewhere') return result;
        await new Promise((resolve) => setTimeout(resolve, handOverPauseMs));
      }
      return 'unknown';
    },
  };
}

/** A worker has claimed the call and not started its machine yet: milliseconds, unless SQL is slow. */
const handOverAttempts = 20;
const handOverPauseMs = 50;
