// Effects for keys, both those that the far end presses and those that the call presses.

import { assertEvent } from 'xstate';
import { nextEvent, noLaterThanEnd } from '../life/call-events.ts';
import { type CallMachineContext, type CallMachineEvent, callSetup } from '../life/call-setup.ts';
import { hiddenDigits, hidesKeys } from '../recording/recording-progress.ts';
import type { KeyTransport } from './keys.ts';

export const emitDtmf = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, ['leg.dtmf', 'media.dtmf']);
  if (context.digits >= context.limits.maxDigits) return;
  const press = pressOf(context, event);
  const { event: emitted, ...sequences } = nextEvent(context, 'dtmf', event.at, press);
  enqueue.assign({ digits: context.digits + 1, ...sequences });
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/** Returns the event's data. Hides a digit that was pressed while the recording was paused. */
function pressOf(
  { recording }: CallMachineContext,
  event: Extract<CallMachineEvent, { type: 'leg.dtmf' | 'media.dtmf' }>,
) {
  const { durationMs } = event;
  // A key is reported when it is released.
  const pressedAt = new Date(event.at.getTime() - (durationMs ?? 0));
  const digit = hidesKeys(recording, pressedAt) ? hiddenDigits(event.digit) : event.digit;
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
  const { command } = event;
  if (command.kind !== 'press') return {};
  const { commandId = '' } = command.keys;
  const { hiddenPresses, pressing, recording, clock } = context;
  const isHidden = hidesKeys(recording, clock.now());
  return {
    pressing: pressing + 1,
    ...(isHidden ? { hiddenPresses: [...hiddenPresses, commandId] } : {}),
  };
});

export const emitKeysSent = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.keysSent');
  const at = noLaterThanEnd(context, event.at);
  const { report } = event;
  const { hiddenPresses, pressing, recording } = context;
  const isHidden = hiddenPresses.includes(report.commandId) || hidesKeys(recording, at);
  const sent = isHidden ? { ...report, digits: hiddenDigits(report.digits) } : report;
  const { event: emitted, ...sequences } = nextEvent(context, 'dtmf-sent', at, sent);
  enqueue.assign({
    pressing: Math.max(0, pressing - 1),
    hiddenPresses: hiddenPresses.filter((commandId) => commandId !== report.commandId),
    ...sequences,
  });
  enqueue({ type: 'append', params: { events: [emitted] } });
});
