// Builds the `amd` event. Like those in `call-events.ts`, the functions are pure.

import type { AcceptedCall } from '../call-types.ts';
import type { EventOf } from '../contract/call-event.ts';
import {
  answerTimes,
  type CallProgress,
  type NextEvent,
  nextEventWith,
} from '../life/call-events.ts';
import { type AmdEvent, type AmdEventName, closingAmdEvents } from './amd-event.ts';
import type { DetectionStop } from './amd-reasons.ts';

type AnsweredProgress = CallProgress & { readonly answeredAt: Date };

export function amdEvent(progress: AnsweredProgress, at: Date, amd: AmdEvent): NextEvent {
  const isNotified = isSubscribed(progress.call, amd.event);
  return nextEventWith<EventOf<'amd'>>(progress, 'amd', at, isNotified, (number) => ({
    ...answerTimes(progress, progress.answeredAt),
    ...number,
    amd,
  }));
}

/**
 * Whether a notification is sent for the event. By default, that's the case for every AMD event. An
 * empty subscription list means no notifications.
 */
function isSubscribed(call: AcceptedCall, event: AmdEventName): boolean {
  const { notifyUrl, amdEventsSubscription } = call.request;
  return notifyUrl !== undefined && (amdEventsSubscription?.includes(event) ?? true);
}

/** Builds `amd_stopped` for a detection that didn't report it itself. */
export function amdStoppedEvent<Progress extends AnsweredProgress>(
  progress: Progress,
  at: Date,
  { reason, round }: { readonly reason: DetectionStop; readonly round: number },
) {
  const elapsedMs = at.getTime() - progress.answeredAt.getTime();
  const [, amd] = closingAmdEvents(reason, elapsedMs, round);
  const amdEvents = [...progress.amdEvents, amd];
  const { event, ...sequences } = amdEvent({ ...progress, amdEvents }, at, amd);
  return { event, progress: { amdEvents, ...sequences } };
}
