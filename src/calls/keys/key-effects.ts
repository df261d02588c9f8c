// Effects for keys, both those that the far end presses and those that the call presses.

import { assertEvent } from 'xstate';
import { nextEvent, noLaterThanEnd } from '../life/call-events.ts';
import { type CallMachineEvent, callSetup } from '../life/call-setup.ts';
import type { KeyTransport } from './keys.ts';

export const emitDtmf = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, ['leg.dtmf', 'media.dtmf']);
  if (context.digits >= context.limits.maxDigits) return;
  const { event: emitted, ...sequences } = nextEvent(context, 'dtmf', event.at, pressOf(event));
  enqueue.assign({ digits: context.digits + 1, ...sequences });
  enqueue({ type: 'append', params: { events: [emitted] } });
});

function pressOf(event: Extract<CallMachineEvent, { type: 'leg.dtmf' | 'media.dtmf' }>) {
  const { digit, durationMs } = event;
  const source: KeyTransport = event.type === 'leg.dtmf' ? 'info' : 'rtp';
  return { digit, source, ...(durationMs === undefined ? {} : { durationMs }) };
}

export const noteAcceptsKeys = callSetup.assign(({ event }) => {
  assertEvent(event, 'line.acceptsKeys');
  return { acceptsKeys: event.acceptsKeys };
});

/** Counts `press` commands, because the media worker must report the end of each one. */
export const countKeys = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'command.media');
  return event.command.kind === 'press' ? { pressing: context.pressing + 1 } : {};
});

export const emitKeysSent = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.keysSent');
  const at = noLaterThanEnd(context, event.at);
  const { event: emitted, ...sequences } = nextEvent(context, 'dtmf-sent', at, event.report);
  enqueue.assign({ pressing: Math.max(0, context.pressing - 1), ...sequences });
  enqueue({ type: 'append', params: { events: [emitted] } });
});
