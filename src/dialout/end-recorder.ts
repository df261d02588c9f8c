// Ends calls that have no machine: still queued, expired, or left by a process that died.

import { type CallProgress, endFact } from '../calls/call-facts.ts';
import { publishInOrder } from '../calls/call-journal.ts';
import type { CallEnd } from '../calls/call-outcome.ts';
import type { CallEvent, TerminalEvent } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallLedger, EventPublisher } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';

export type EndRecorder = {
  /**
   * Claims the end in SQL and publishes it, after the facts that the stream misses. False: it had ended before.
   * Resolves when SQL has it; publishing goes on in the background, and again at the next start if it fails.
   */
  record(
    progress: CallProgress,
    end: CallEnd,
    missing?: readonly CallEvent[],
    /** Somebody may be left in the call: whoever hangs up says when it is done with. */
    how?: { readonly owesFarEnd: boolean },
  ): Promise<boolean>;
  /** An end that the stream has, and SQL has not: SQL was put back to an earlier day. It is published again as it was. */
  recordStated(
    callId: CallId,
    end: TerminalEvent,
    how: { readonly owesFarEnd: boolean },
  ): Promise<boolean>;
  /** `record` for a call that nobody has begun to dial. False: somebody has, or it had ended. */
  recordQueued(
    progress: CallProgress,
    end: CallEnd,
    missing?: readonly CallEvent[],
  ): Promise<boolean>;
};

export function createEndRecorder(ports: {
  readonly ledger: Pick<CallLedger, 'claimEnd' | 'claimEndOfQueued' | 'markEndPublished'>;
  readonly publisher: EventPublisher;
  readonly logger: Logger;
}): EndRecorder {
  const { ledger, publisher, logger } = ports;

  function publish(callId: CallId, events: readonly CallEvent[], owesFarEnd: boolean): void {
    publishInOrder(publisher, events)
      .then(() => (owesFarEnd ? undefined : ledger.markEndPublished(callId)))
      .catch((error: unknown) =>
        logger.warn({ err: error, callId }, 'the end of a call was not published'),
      );
  }

  return {
    async record(progress, end, missing = [], { owesFarEnd } = { owesFarEnd: false }) {
      const { callId } = progress.call;
      const { event } = endFact(progress, end);
      const claimed = await ledger.claimEnd(callId, event, missing);
      if (claimed) publish(callId, [...missing, event], owesFarEnd);
      return claimed;
    },
    async recordStated(callId, end, { owesFarEnd }) {
      const claimed = await ledger.claimEnd(callId, end, []);
      if (claimed) publish(callId, [end], owesFarEnd);
      return claimed;
    },
    async recordQueued(progress, end, missing = []) {
      const { callId } = progress.call;
      const { event } = endFact(progress, end);
      const claimed = await ledger.claimEndOfQueued(callId, event, missing);
      if (claimed) publish(callId, [...missing, event], false);
      return claimed;
    },
  };
}
