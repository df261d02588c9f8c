// The call machine with everything it touches: the line, SQL and the stream.

import { fromPromise } from 'xstate';
import type { Logger } from '../lib/logger.ts';
import type { CallEvent, TerminalEvent } from './call-events.ts';
import { CallJournal } from './call-journal.ts';
import { createLineActor } from './call-line.ts';
import { callMachine } from './call-machine.ts';
import type { RecordEndInput, StoreAnswerInput } from './call-setup.ts';
import type { CallId } from './call-types.ts';
import type { CallLedger, Clock, EventPublisher, MediaPort, SipPort } from './ports.ts';

export type CallPorts = {
  readonly sip: SipPort;
  readonly media: MediaPort;
  readonly ledger: CallLedger;
  readonly publisher: EventPublisher;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Between tries to record an end while SQL is away; the machine's own time-out bounds their number. */
const recordEndRetryMs = 500;

export function createCallLogic(ports: CallPorts, callId: CallId) {
  const { ledger, publisher } = ports;
  const logger = ports.logger.child({ callId });
  const journal = new CallJournal(publisher, (error) =>
    logger.warn({ err: error }, 'a fact was not published'),
  );
  const logged = (what: string) => (error: unknown) =>
    logger.error({ err: error, what }, 'ledger write failed');

  return callMachine.provide({
    actors: {
      line: createLineActor(ports),
      storeAnswer: fromPromise<void, StoreAnswerInput>(({ input }) =>
        ledger.recordAnswer(callId, { at: input.at, leg: input.leg, event: input.event }),
      ),
      recordEnd: fromPromise<void, RecordEndInput>(async ({ input, signal }) => {
        const claimed = await claimEnd(
          ledger,
          callId,
          input.event,
          journal.unpublished(),
          signal,
          logged('claimEnd'),
        );
        if (claimed) publishEnd(ports, callId, input.event, logged('markEndPublished'));
        else logger.warn('call had been ended by somebody else');
      }),
    },
    actions: {
      publish: (_, event: CallEvent) => journal.publish(event),
      recordInvite: (_, leg) => void ledger.recordInvite(callId, leg).catch(logged('recordInvite')),
      recordRinging: (_, at) =>
        void ledger.recordRinging(callId, at).catch(logged('recordRinging')),
    },
  });
}

/** Tries until SQL has answered: an end that is not claimed is an end that nobody hears of. */
async function claimEnd(
  ledger: CallLedger,
  callId: CallId,
  event: TerminalEvent,
  unpublished: readonly CallEvent[],
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<boolean> {
  for (;;) {
    try {
      return await ledger.claimEnd(callId, event, unpublished);
    } catch (error) {
      onError(error);
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, recordEndRetryMs));
      signal.throwIfAborted();
    }
  }
}

/** In the background: the call is over, and what SQL holds is published again at the next start if this does not get through. */
export function publishEnd(
  ports: Pick<CallPorts, 'publisher' | 'ledger'>,
  callId: CallId,
  event: TerminalEvent,
  onError: (error: unknown) => void,
): void {
  ports.publisher
    .publish(event)
    .then(() => ports.ledger.markEndPublished(callId))
    .catch(onError);
}
