// Stores the ends of calls that don't have a state machine because they are still queued, have
// expired, or belonged to a process that died.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { type CallProgress, endEvent } from '../calls/life/call-events.ts';
import type { CallEnd } from '../calls/life/call-outcome.ts';
import type { CallOutbox } from '../calls/ports.ts';
import { evidenceIn } from '../calls/rules/evidence.ts';

export type EndRecorder = {
  /**
   * Stores a call's end, preceded by the events in `missing`, which the database doesn't contain
   * yet. Resolves when all of them have been stored.
   * @returns false if the call had already ended or another process owns it
   */
  record(
    progress: CallProgress,
    end: CallEnd,
    missing: readonly CallEvent[],
    /**
     * `isRecovered` is true if the callee may still be connected. Recovery then hangs up the call
     * and marks it as settled.
     */
    how: { readonly isRecovered: boolean },
  ): Promise<boolean>;
  /**
   * Stores the end of a call that this process has claimed, but doesn't dial.
   * @returns false if the call had already ended or another process owns it
   */
  recordClaimed(progress: CallProgress, end: CallEnd): Promise<boolean>;
  /**
   * Stores the end of a call that no process has started to dial.
   * @returns false if a process has started to dial the call, or if the call had already ended
   */
  recordQueued(progress: CallProgress, end: CallEnd): Promise<boolean>;
};

/** Called once a call's end has been stored. */
type EndListener = (end: CallEnd, call: AcceptedCall) => void;

export function createEndRecorder(
  outbox: CallOutbox,
  onStored: EndListener = () => undefined,
): EndRecorder {
  const store = async (
    end: CallEnd,
    ...append: Parameters<CallOutbox['append']>
  ): Promise<boolean> => {
    const isStored = (await outbox.append(...append)) === 'stored';
    if (isStored) onStored(end, append[0]);
    return isStored;
  };
  return {
    async record(progress, end, missing, { isRecovered }) {
      const { event } = endEvent(progress, end);
      const step = {
        events: missing,
        ...(progress.sentAt === undefined ? {} : { dialedAt: progress.sentAt }),
        // The process may have died between the INVITE and storing it.
        ending: { event, ...evidenceIn(progress), sentBy: end.at },
      };
      // The database may already contain the dead process's last events.
      return await store(end, progress.call, step, { isRepeated: true, isRecovered });
    },
    async recordClaimed(progress, end) {
      const { event } = endEvent(progress, end);
      return await store(end, progress.call, { events: [], ending: { event } });
    },
    async recordQueued(progress, end) {
      const { event } = endEvent(progress, end);
      const step = { events: [], ending: { event } };
      return await store(end, progress.call, step, { isUntaken: true });
    },
  };
}
