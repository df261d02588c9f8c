// The call machine with everything it touches: the line and what stores its steps.

import type { Logger } from '../lib/logger.ts';
import { RunningChart, type RunOptions } from '../lib/statechart/running-chart.ts';
import { callContext, callMachine } from './call-machine.ts';
import type { CallChartTypes, CallMachineInput, Journal } from './call-setup.ts';
import type { AcceptedCall } from './call-types.ts';
import { Line, type LinePorts } from './line/call-line.ts';
import type { CallOutbox } from './ports.ts';

export type CallPorts = LinePorts & {
  readonly outbox: CallOutbox;
  readonly logger: Logger;
};

/** A call's machine with its line. */
export type CallActor = RunningChart<CallChartTypes>;

export type CallListeners = Pick<RunOptions<CallChartTypes>, 'onDone' | 'onFailed' | 'timers'>;

/** To be started. */
export function createCallActor(
  ports: LinePorts,
  input: CallMachineInput,
  listeners: CallListeners,
): CallActor {
  const line = new Line(input.call, ports, (event) => actor.send(event));
  const actor: CallActor = new RunningChart(callMachine, {
    context: callContext(input),
    partner: line,
    ...listeners,
  });
  return actor;
}

/** Of one call. */
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
