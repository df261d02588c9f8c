// Connects the call machine to its line, and to the outbox that stores its steps.

import type { AcceptedCall } from '../call-types.ts';
import type { CallOutbox } from '../ports.ts';
import { createLineActor, type LinePorts } from './call-line.ts';
import { callMachine } from './call-machine.ts';
import type { Journal } from './call-setup.ts';

export type CallPorts = LinePorts & {
  readonly outbox: CallOutbox;
};

/** Makes the machine logic, which all calls share. Anything specific to a call is in the input. */
export function createCallLogic(ports: LinePorts) {
  return callMachine.provide({ actors: { line: createLineActor(ports) } });
}

export function createJournal(
  { outbox, logger }: Pick<CallPorts, 'outbox' | 'logger'>,
  call: AcceptedCall,
): Journal {
  return {
    append: (step) => {
      outbox
        .append(call, step)
        .catch((error: unknown) =>
          logger.error({ err: error, callId: call.callId }, 'an event of a call was not stored'),
        );
    },
    store: (step) => outbox.append(call, step),
  };
}
