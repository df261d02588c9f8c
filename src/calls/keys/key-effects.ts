// Effects for keys, both those that the far end presses and those that the call presses.

import { assertEvent } from 'xstate';
import { nextEvent, noLaterThanEnd } from '../life/call-events.ts';
import {
  type CallMachineContext,
  type CallMachineEvent,
  callSetup,
  changing,
} from '../life/call-setup.ts';
import { hiddenDigits, hidesKeys } from '../recording/recording-progress.ts';
import type { KeyTransport } from './keys.ts';

export const emitDtmf = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, ['leg.dtmf', 'media.dtmf']);
  if (context.keys.digits >= context.limits.maxDigits) return;
  const press = pressOf(context, event);
  const { event: emitted, ...sequences } = nextEvent(context.progress, 'dtmf', event.at, press);
  enqueue.assign(changing('progress', sequences));
  enqueue.assign(changing('keys', { digits: context.keys.digits + 1 }));
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/** Returns the event's data. Hides a digit that was pressed while the recording was paused. */
function pressOf(
  { progress: { recording } }: CallMachineContext,
  event: Extract<CallMachineEvent, { type: 'leg.dtmf' | 'media.dtmf' }>,
) {
  const { durationMs } = event;
  // A key is reported when it is released.
  const pressedAt = new Date(event.at.getTime() - (durationMs ?? 0));
  const digit = hidesKeys(recording, pressedAt) ? hiddenDigits(event.digit) : event.digit;
  const source: KeyTransport = event.type === 'leg.dtmf' ? 'info' : 'rtp';
  return { digit, source, ...(durationMs === undefined ? {} : { durationMs }) };
}

export const noteAcceptsKeys = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'line.acceptsKeys');
  return { keys: { ...context.keys, acceptsKeys: event.acceptsKeys } };
});

/** Counts `press` commands, because the media worker must report the end of each one. */
export const countKeys = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'command.media');
  const { command } = event;
  if (command.kind !== 'press') return {};
  const { commandId = '' } = command.keys;
  const { keys, progress, clock } = context;
  const isHidden = hidesKeys(progress.recording, clock.now());
  const hiddenPresses = isHidden ? [...keys.hiddenPresses, commandId] : keys.hiddenPresses;
  return { keys: { ...keys, pressing: keys.pressing + 1, hiddenPresses } };
});

export const emitKeysSent = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.keysSent');
  const at = noLaterThanEnd(context, event.at);
  const { report } = event;
  const { hiddenPresses, pressing } = context.keys;
  const isHidden =
    hiddenPresses.includes(report.commandId) || hidesKeys(context.progress.recording, at);
  const sent = isHidden ? { ...report, digits: hiddenDigits(report.digits) } : report;
  const { event: emitted, ...sequences } = nextEvent(context.progress, 'dtmf-sent', at, sent);
  enqueue.assign(changing('progress', sequences));
  enqueue.assign(
    changing('keys', {
      pressing: Math.max(0, pressing - 1),
      hiddenPresses: hiddenPresses.filter((commandId) => commandId !== report.commandId),
    }),
  );
  enqueue({ type: 'append', params: { events: [emitted] } });
});
