// Opt-out effects: state that the person doesn't want to be called any more, and end the call.

import { assertEvent } from 'xstate';
import { announce } from '../announcements/announcement-effects.ts';
import { nextEvent } from '../life/call-events.ts';
import { endAfterAnswer } from '../life/call-outcome.ts';
import { callSetup, changing } from '../life/call-setup.ts';
import { evidenceAfter } from '../rules/evidence.ts';
import { type OptOutWay, sourceOf } from './opt-outs.ts';

/** The key means nothing while an agent is connected, because the agent may have a menu. */
export const optOutByKey = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, ['leg.dtmf', 'media.dtmf']);
  const { optOutKey } = context.progress.call.request;
  if (event.digit !== optOutKey || context.ongoing?.isAnswered === true) return;
  enqueue(
    optOut(event.at, { by: 'key', source: sourceOf(context.progress.call.callId, optOutKey) }),
  );
});

export const optOutByCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.optOut');
  const { commandId } = event;
  const source = sourceOf(context.progress.call.callId);
  enqueue(optOut(context.clock.now(), { by: 'command', source, commandId }));
});

type OptOut = { readonly by: OptOutWay; readonly source: string; readonly commandId?: string };

/** The outbox stores the suppression together with the event (`src/store/outbox`). */
function optOut(at: Date, data: OptOut) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    if (context.end !== undefined) return;
    if (context.progress.evidence.optedOut === undefined) {
      const { event, ...sequences } = nextEvent(context.progress, 'opted-out', at, data);
      const evidence = evidenceAfter(context.progress.evidence, event);
      enqueue.assign(changing('progress', { evidence, ...sequences }));
      enqueue({ type: 'append', params: { events: [event] } });
    }
    enqueue(endOptedOutCall);
  });
}

/** An agent who is connected ends the call in their own time, and so does an announcement. */
const endOptedOutCall = callSetup.enqueueActions(({ context, enqueue }) => {
  const { progress, ongoing, announcing, clock } = context;
  if (ongoing?.isAnswered === true || announcing !== undefined) return;
  if (progress.call.request.optOutSound !== undefined) return enqueue(announce('optOutSound'));
  enqueue.assign({ end: endAfterAnswer({ by: 'application' }, clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'opt-out' } });
});
