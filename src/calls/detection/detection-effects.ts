// What the machine's transitions do with what detection says: state it, and hang up where the request asks for that.

import { assertEvent } from 'xstate';
import { noLaterThanEnd } from '../life/call-events.ts';
import { endOfMachine } from '../life/call-outcome.ts';
import { type CallMachineContext, callSetup } from '../life/call-setup.ts';
import type { AmdEvent } from './amd-event.ts';
import { amdEvent, amdStoppedEvent } from './detection-events.ts';

export const emitAmd = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.amd');
  const { answeredAt } = context;
  if (answeredAt === undefined || context.detection !== 'running') return;
  if (isOverruled(context, event.amd)) return;
  const amdEvents = [...context.amdEvents, event.amd];
  const at = noLaterThanEnd(context, event.at);
  const progress = { ...context, answeredAt, amdEvents };
  const { event: emitted, ...sequences } = amdEvent(progress, at, event.amd);
  enqueue.assign({
    amdEvents,
    detection: event.amd.event === 'amd_stopped' ? 'stopped' : 'running',
    ...sequences,
  });
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/** The media worker owed `amd_stopped` and did not say it in time: it is said for it, so that the order always holds. */
export const emitAmdStopped = callSetup.enqueueActions(({ context, enqueue }) => {
  const { answeredAt } = context;
  if (answeredAt === undefined || context.detection !== 'running') return;
  const at = context.end?.at ?? context.clock.now();
  const stop = { reason: 'call-ended', round: context.round };
  const { event, progress } = amdStoppedEvent({ ...context, answeredAt }, at, stop);
  enqueue.assign({ detection: 'stopped', ...progress });
  enqueue({ type: 'append', params: { events: [event] } });
});

export const hangUpOnMachine = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfMachine(context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: 'machine' } });
});

/** A verdict that was given stands: a detection that fails after it only stops. */
function isOverruled({ amdEvents }: CallMachineContext, amd: AmdEvent): boolean {
  return amd.event === 'amd_error' && amdEvents.length > 0;
}

/** In `disconnect` mode, events that end the call: a machine, or a detection that failed. */
export function disconnects(
  context: CallMachineContext,
  amd: AmdEvent,
): 'machine' | 'failure' | undefined {
  if (context.call.request.machineDetection !== 'disconnect') return undefined;
  // An agent who hears a machine hangs up; a beep in a person's room ends no conversation.
  if (context.ongoing?.isAnswered === true) return undefined;
  if (isOverruled(context, amd)) return undefined;
  if (amd.event === 'amd_machine_detected' || amd.event === 'amd_tone_detected') return 'machine';
  return amd.event === 'amd_error' ? 'failure' : undefined;
}
