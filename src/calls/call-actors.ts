// The call machine with everything it touches: the line, SQL and the stream.

import { setTimeout as pause } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import type { Logger } from '../lib/logger.ts';
import { CallJournal, publishInOrder } from './call-journal.ts';
import { createLineActor, type LinePorts } from './call-line.ts';
import { callMachine } from './call-machine.ts';
import type { Journal, RecordEndInput, StoreAnswerInput } from './call-setup.ts';
import type { CallEvent } from './contract/call-event.ts';
import type { CallId } from './contract/identity.ts';
import { LegRecord } from './leg-record.ts';
import type { CallLedger, EventPublisher } from './ports.ts';

export type CallPorts = LinePorts & {
  /** Resolves when nothing of the call is on the wire any more. Left out: it never is, once the call has ended. */
  readonly untilReleased?: (callId: CallId) => Promise<void>;
  readonly ledger: CallLedger;
  readonly publisher: EventPublisher;
  readonly logger: Logger;
};

/** Between tries to record an end while SQL is away; the machine's own time-out bounds their number. */
const recordEndRetryMs = 500;

/** One for all calls: what differs between them is in the input. */
export function createCallLogic(ports: CallPorts) {
  const { ledger } = ports;
  const logged = (callId: CallId, what: string) => (error: unknown) =>
    ports.logger.error({ err: error, callId, what }, 'ledger write failed');
  const legs = new LegRecord(ledger, (callId, error) => logged(callId, 'recordInvite')(error));

  return callMachine.provide({
    actors: {
      line: createLineActor(ports),
      storeAnswer: fromPromise<void, StoreAnswerInput>(({ input }) => {
        const { call, at, leg, event, journal } = input;
        const unpublished = journal.unpublished();
        return ledger.recordAnswer(call.callId, { at, leg, event, unpublished });
      }),
      recordEnd: fromPromise<void, RecordEndInput>(async ({ input, signal }) => {
        const { callId } = input.call;
        const claimed = await claimEnd(ledger, input, signal, logged(callId, 'claimEnd'));
        const owed = [...input.journal.givenUp(), input.event];
        if (claimed) publishEnd(ports, callId, owed);
        else ports.logger.warn({ callId }, 'call had been ended by somebody else');
      }),
    },
    actions: {
      recordInvite: ({ context }, leg) => {
        legs.keep(context.call.callId, leg);
      },
      recordRinging: ({ context }, { at, leg }) => {
        const { callId } = context.call;
        ledger.recordRinging(callId, at, leg).catch(logged(callId, 'recordRinging'));
      },
    },
  });
}

export function createJournal(
  ports: Pick<CallPorts, 'publisher' | 'logger'>,
  first: CallEvent,
): Journal {
  const { callId } = first;
  return new CallJournal(ports.publisher, first, (error) =>
    ports.logger.warn({ err: error, callId }, 'a fact was not published'),
  );
}

/** Tries until SQL has answered: an end that is not claimed is an end that nobody hears of. */
async function claimEnd(
  ledger: CallLedger,
  { call, event, journal }: RecordEndInput,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<boolean> {
  // The same in every try: a claim whose answer was lost is recognised by its bytes.
  const unpublished = journal.unpublished();
  for (;;) {
    try {
      return await ledger.claimEnd(call.callId, event, unpublished);
    } catch (error) {
      onError(error);
      signal.throwIfAborted();
      await pause(recordEndRetryMs);
      signal.throwIfAborted();
    }
  }
}

/**
 * In the background: the call is over, and what SQL holds is published again later if this does not get through. It is
 * done with when nobody is left in the call either: until then another process would hang up in place of this one.
 */
function publishEnd(
  ports: Pick<CallPorts, 'publisher' | 'ledger' | 'logger' | 'untilReleased'>,
  callId: CallId,
  events: readonly CallEvent[],
): void {
  publishInOrder(ports.publisher, events)
    .then(() => ports.untilReleased?.(callId))
    .then(() => ports.ledger.markEndPublished(callId))
    .catch((error: unknown) =>
      ports.logger.warn({ err: error, callId }, 'the end of a call was not published'),
    );
}
