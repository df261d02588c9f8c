// What the machine's transitions do with keys that the call presses.

import { header, stated } from '../call-events.ts';
import { assertEvent, assign, type CallEffect } from '../call-setup.ts';
import type { EventOf } from '../contract/call-event.ts';
import { earlier } from './call-effects.ts';

export const noteTakesKeys = assign(({ event }) => {
  assertEvent(event, 'line.takesKeys');
  return { takesKeys: event.takesKeys };
});

export const pressKeys: CallEffect = ({ context, event, machine }) => {
  assertEvent(event, 'command.press');
  machine.assign({ pressing: context.pressing + 1 });
  machine.command({ type: 'press', keys: event.keys });
};

export const stateKeysSent: CallEffect = ({ context, event, machine }) => {
  assertEvent(event, 'line.keysSent');
  // What is told after the call's end happened at its end: times do not run backwards.
  const at = context.end === undefined ? event.at : earlier(event.at, context.end.at);
  const type = 'dtmf-sent';
  const sent: EventOf<'dtmf-sent'> = { ...header(context, type, at), type, data: event.report };
  const { event: told, ...sequences } = stated(context, sent, false);
  machine.assign({ pressing: Math.max(0, context.pressing - 1), ...sequences });
  context.journal.append({ events: [told] });
};
