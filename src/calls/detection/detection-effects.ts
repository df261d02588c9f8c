// Detection effects: emit what detection reports, and hang up if the request asks for it.

import { assertEvent } from 'xstate';
import { noLaterThanEnd } from '../life/call-events.ts';
import { endOfMachine } from '../life/call-outcome.ts';
import { type CallMachineContext, callSetup } from '../life/call-setup.ts';
import type { AmdEvent } from './amd-event.ts';
import { amdEvent, amdStoppedEvent } from './detection-events.ts';

export const emitAmd = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.amd');
  const { answeredAt } = context.progress;
  if (answeredAt === undefined || context.detection !== 'running') return;
  if (isOverruled(context, event.amd)) return;
  const amdEvents = [...context.progress.amdEvents, event.amd];
  const at = noLaterThanEnd(context, event.at);
  const progress = { ...context.progress, answeredAt, amdEvents };
  const { event: emitted, ...sequences } = amdEvent(progress, at, event.amd);
  enqueue.assign({
    progress: { ...context.progress, amdEvents, ...sequences },
    detection: event.amd.event === 'amd_stopped' ? 'stopped' : 'running',
  });
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/**
 * Emits the `amd_stopped` event if the media worker didn't report it in time. Every detection must
 * end with that event.
 */
export const emitAmdStopped = callSetup.enqueueActions(({ context, enqueue }) => {
  const { answeredAt } = context.progress;
  if (answeredAt === undefined || context.detection !== 'running') return;
  const at = context.end?.at ?? context.clock.now();
  const stop = { reason: 'call-ended', round: context.plans.round } as const;
  const { event, progress } = amdStoppedEvent({ ...context.progress, answeredAt }, at, stop);
  enqueue.assign({ detection: 'stopped', progress: { ...context.progress, ...progress } });
  enqueue({ type: 'append', params: { events: [event] } });
});

export const hangUpOnMachine = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfMachine(context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'machine' } });
});

/**
 * Whether an earlier verdict makes the event irrelevant. If detection fails after its verdict, we
 * only emit `amd_stopped`.
 */
function isOverruled({ progress }: CallMachineContext, amd: AmdEvent): boolean {
  return amd.event === 'amd_error' && progress.amdEvents.length > 0;
}

/**
 * Returns why the event ends the call in `disconnect` mode, which is either a machine or a failed
 * detection. Undefined if the call continues.
 */
export function disconnectReason(
  context: CallMachineContext,
  amd: AmdEvent,
): 'machine' | 'failure' | undefined {
  if (context.progress.call.request.machineDetection !== 'disconnect') return undefined;
  // Once an agent is connected, it's up to the agent when to hang up. A beep in the person's room
  // must not end the conversation.
  if (context.ongoing?.isAnswered === true) return undefined;
  if (isOverruled(context, amd)) return undefined;
  if (amd.event === 'amd_machine_detected' || amd.event === 'amd_tone_detected') return 'machine';
  return amd.event === 'amd_error' ? 'failure' : undefined;
}
