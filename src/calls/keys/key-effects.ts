// What the machine's transitions do with keys: those that the far end presses, and those that the call presses.

import { assertEvent } from 'xstate';
import type { EventOf } from '../contract/call-event.ts';
import { earlier } from '../life/call-effects.ts';
import { dtmfEvent, header, stated } from '../life/call-events.ts';
import { type CallMachineEvent, callSetup, commandMedia } from '../life/call-setup.ts';
import type { KeyTransport } from '../ports.ts';

export const stateDtmf = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, ['leg.dtmf', 'media.dtmf']);
  if (context.digits >= context.limits.maxDigits) return;
  const { event: stated, ...sequences } = dtmfEvent(context, event.at, pressOf(event));
  enqueue.assign({ digits: context.digits + 1, ...sequences });
  enqueue({ type: 'append', params: { events: [stated] } });
});

function pressOf(event: Extract<CallMachineEvent, { type: 'leg.dtmf' | 'media.dtmf' }>) {
  const { digit, durationMs } = event;
  const source: KeyTransport = event.type === 'leg.dtmf' ? 'info' : 'rtp';
  return { digit, source, ...(durationMs === undefined ? {} : { durationMs }) };
}

export const noteTakesKeys = callSetup.assign(({ event }) => {
  assertEvent(event, 'line.takesKeys');
  return { takesKeys: event.takesKeys };
});

export const pressKeys = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.press');
  enqueue.assign({ pressing: context.pressing + 1 });
  enqueue(commandMedia({ kind: 'press', keys: event.keys }));
});

export const stateKeysSent = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.keysSent');
  // What is told after the call's end happened at its end: times do not run backwards.
  const at = context.end === undefined ? event.at : earlier(event.at, context.end.at);
  const type = 'dtmf-sent';
  const sent: EventOf<'dtmf-sent'> = { ...header(context, type, at), type, data: event.report };
  const { event: told, ...sequences } = stated(context, sent);
  enqueue.assign({ pressing: Math.max(0, context.pressing - 1), ...sequences });
  enqueue({ type: 'append', params: { events: [told] } });
});
