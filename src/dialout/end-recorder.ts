// Ends calls that have no machine: still queued, expired, or left by a process that died.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { type CallProgress, endEvent } from '../calls/life/call-events.ts';
import type { CallEnd } from '../calls/life/call-outcome.ts';
import type { CallOutbox } from '../calls/ports.ts';

export type EndRecorder = {
  /** With events that SQL has not. False: it had ended before, or is another process's. Resolves when SQL has it. */
  record(
    progress: CallProgress,
    end: CallEnd,
    missing: readonly CallEvent[],
    /** A far end may be left in the call: recovery, which hangs up, settles it. */
    how: { readonly isRecovered: boolean },
  ): Promise<boolean>;
  /** Of a call that no process has begun to dial. False: one has, or it had ended. */
  recordQueued(progress: CallProgress, end: CallEnd): Promise<boolean>;
};

export function createEndRecorder(outbox: CallOutbox): EndRecorder {
  return {
    async record(progress, end, missing, { isRecovered }) {
      const { event } = endEvent(progress, end);
      const step = { events: missing, ending: { event } };
      return (
        // What the dead process sent last may be stored meanwhile.
        (await outbox.append(progress.call, step, { isRepeated: true, isRecovered })) === 'stored'
      );
    },
    async recordQueued(progress, end) {
      const { event } = endEvent(progress, end);
      const step = { events: [], ending: { event } };
      return (await outbox.append(progress.call, step, { isUntaken: true })) === 'stored';
    },
  };
}
