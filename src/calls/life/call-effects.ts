// Effects for the call's life: they update the progress, build and append events, and send commands
// to the line. No I/O.

import { assertEvent } from 'xstate';
import { isAbandoned } from '../abandonment/abandonment.ts';
import type { CallEvent } from '../contract/call-event.ts';
import { amdStoppedEvent } from '../detection/detection-events.ts';
import { answeredEvent, dialingEvent, endEvent, ringingEvent } from './call-events.ts';
import {
  type EndCommand,
  endAfterAnswer,
  endBeforeAnswer,
  endOfExpiry,
  endOfFailure,
  endOfMaxDuration,
  endOfRefusal,
  endOfRemoteBye,
  endOfRingTimeout,
} from './call-outcome.ts';
import {
  type CallMachineContext,
  type CallMachineEvent,
  callSetup,
  changing,
  sendToMedia,
} from './call-setup.ts';

const answerNotStored = { by: 'gateway', reason: 'The answer could not be recorded' } as const;

export const emitDialing = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'leg.sent');
  const { event: emitted, ...sequences } = dialingEvent(context.progress, event.at, event.gateway);
  // The time to connect is measured from the first INVITE, whichever gateway ends up carrying the
  // call.
  const dialedAt = context.progress.sentAt ?? event.at;
  enqueue.assign(changing('progress', { sentAt: dialedAt, ...sequences }));
  enqueue({ type: 'append', params: { events: [emitted], dialedAt, leg: event.leg } });
});

export const notePlacing = callSetup.assign({ mayHaveSent: true });

export const noteFailedAttempt = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.attemptFailed');
  const failedAttempts = [...context.progress.failedAttempts, event.attempt];
  return { progress: { ...context.progress, failedAttempts } };
});

export const emitRinging = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'leg.provisional');
  const { status, reason, sdp } = event;
  const response = { sipStatus: status, sipReason: reason, earlyMedia: sdp !== undefined };
  const { event: emitted, ...sequences } = ringingEvent(context.progress, event.at, response);
  enqueue.assign(changing('progress', { ringingAt: event.at, ...sequences }));
  const leg = event.leg === undefined ? {} : { leg: event.leg };
  enqueue({ type: 'append', params: { events: [emitted], ringingAt: event.at, ...leg } });
});

export const noteStated = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.stated');
  const { progress } = context;
  const { connectedIdentity = progress.connectedIdentity, cause = progress.earlyCause } = event;
  return { progress: { ...progress, connectedIdentity, earlyCause: cause } };
});

export const noteAnswer = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.answered');
  const progress = { ...context.progress, answeredAt: event.at };
  const { event: emitted, ...sequences } = answeredEvent(progress);
  const { eventSequence, notificationSequence } = progress;
  const detects = context.progress.call.request.machineDetection !== 'disabled';
  return {
    progress: { ...progress, ...sequences },
    answer: { event: emitted, before: { eventSequence, notificationSequence } },
    leg: event.leg,
    detection: detects ? ('running' as const) : ('off' as const),
    keys: { ...context.keys, acceptsKeys: event.acceptsKeys },
  };
});

/** Makes the line ACK the 200 OK. The callee keeps retransmitting it until then. */
export const acknowledge = callSetup.enqueueActions(({ enqueue }) => {
  enqueue({ type: 'sendToLine', params: { type: 'acknowledge' } });
});

/**
 * Gives up an answer that may not have been stored. Since its event wasn't published, we treat the
 * call as having failed before the answer. If it turns out that the database did store the answer
 * after all, which we learn when we store the end, the call is treated as answered.
 */
export const abandonAnswer = callSetup.enqueueActions(({ context, enqueue }) => {
  const { answer, progress } = context;
  const { answeredAt, eventSequence, notificationSequence } = progress;
  enqueue({
    type: 'sendToLine',
    params: { type: 'hangUp', reason: 'answer could not be recorded' },
  });
  // The line stays open until the end is stored, which may take as long as the database is away.
  enqueue({ type: 'sendToLine', params: { type: 'stopStream', reason: 'call-ended' } });
  enqueue({ type: 'sendToLine', params: { type: 'stopRecording' } });
  enqueue.assign({
    progress: { ...progress, ...answer?.before, answeredAt: undefined },
    ...(answeredAt === undefined || answer === undefined
      ? {}
      : { answer: { ...answer, uncertain: { answeredAt, eventSequence, notificationSequence } } }),
    detection: 'off',
    end: endBeforeAnswer(answerNotStored, context.clock.now()),
  });
});

/** Asks the media how the call sounded, unless the media session is gone. */
export const awaitQuality = callSetup.enqueueActions(({ event, enqueue }) => {
  if (event.type === 'media.failed') return;
  enqueue.assign(changing('ending', { awaitsQuality: true }));
  enqueue(sendToMedia({ kind: 'requestQuality' }));
});

export const noteQuality = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'media.quality');
  return {
    progress: { ...context.progress, quality: event.quality },
    ending: { ...context.ending, awaitsQuality: false },
  };
});

export const stopAwaitingQuality = callSetup.assign(changing('ending', { awaitsQuality: false }));

export const buildEnd = callSetup.assign(({ context }) => {
  const end =
    context.end ?? endBeforeAnswer({ by: 'gateway', reason: 'Unknown' }, context.clock.now());
  const progress = {
    ...context.progress,
    isAbandoned: isAbandoned(context.reach, context.progress.call.ruling?.abandonment),
  };
  const { event, ...sequences } = endEvent(progress, end);
  return {
    progress: { ...context.progress, ...sequences },
    ending: { ...context.ending, event },
  };
});

export const noteStoredEnd = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'journal.ended');
  return { ending: { ...context.ending, isRefused: event.result !== 'stored' } };
});

/**
 * Builds the events to store instead of the end if the database turns out to contain the uncertain
 * answer. That answer hasn't been published, and detection hasn't emitted any events.
 */
export function endIfAnswered(context: CallMachineContext): readonly CallEvent[] | undefined {
  const { answer, end } = context;
  if (answer?.uncertain === undefined || end === undefined) return undefined;
  const answered = { ...context.progress, ...answer.uncertain };
  const detects = context.progress.call.request.machineDetection !== 'disabled';
  const stop = { reason: 'call-ended', round: 1 } as const;
  const stopped = detects ? amdStoppedEvent(answered, end.at, stop) : undefined;
  const last = endEvent(
    { ...answered, ...stopped?.progress },
    endAfterAnswer(answerNotStored, end.at),
  );
  return [answer.event, ...(stopped === undefined ? [] : [stopped.event]), last.event];
}

export const endByFailure = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.failed');
  const { failure } = event;
  const isRefused = failure.kind === 'response';
  return {
    end: endOfFailure(failure),
    ...(isRefused ? { ending: { ...context.ending, legIsOver: true as const } } : {}),
    ...(failure.isUnsent === true ? { mayHaveSent: false } : {}),
  };
});

export const endByLeg = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.ended');
  const { end } = event;
  const { at, by, reason } = end;
  return {
    end:
      context.end ??
      (by === 'remote' ? endOfRemoteBye(end) : endAfterAnswer({ by: 'gateway', reason }, at)),
    // If the far end sent BYE, its leg has ended. A lost leg may still be up.
    ...(by === 'remote' ? { ending: { ...context.ending, legIsOver: true as const } } : {}),
  };
});

export const cancelByQueueTimeout = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfExpiry(context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'cancel', reason: 'queue time-out' } });
});

export const cancelByRingTimeout = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfRingTimeout(context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'cancel', reason: 'ring time-out' } });
});

export const cancelByCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.end');
  enqueue.assign({ end: endBeforeAnswer(event.command, context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'cancel', reason: event.command.by } });
});

export const cancelByRule = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.refuse');
  const end = endOfRefusal(event.refusal, context.clock.now());
  enqueue.assign({ end });
  enqueue({ type: 'sendToLine', params: { type: 'cancel', reason: end.reason } });
});

export const hangUpByCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.end');
  // The far end may have hung up while the answer was being stored. In that case, the far end's
  // hang-up takes precedence.
  enqueue.assign({ end: context.end ?? endAfterAnswer(event.command, context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: event.command.by } });
});

function failureReason(event: CallMachineEvent): string {
  if (event.type === 'media.failed') return event.reason;
  if (event.type === 'media.inactive') return 'No RTP from the far end';
  return 'Answering machine detection failed';
}

export const hangUpOnFailure = callSetup.enqueueActions(({ context, event, enqueue }) => {
  const reason = failureReason(event);
  const command: EndCommand = { by: 'gateway', reason };
  const at = context.clock.now();
  const answered = context.progress.answeredAt !== undefined;
  enqueue.assign({ end: answered ? endAfterAnswer(command, at) : endBeforeAnswer(command, at) });
  enqueue({ type: 'sendToLine', params: { type: answered ? 'hangUp' : 'cancel', reason } });
});

export const hangUpOnMaxDuration = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfMaxDuration(context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'maximum duration' } });
});
