// What the machine's transitions do: keep the progress, build the events, append them, command the line. Still no I/O.

import { assertEvent } from 'xstate';
import type { CallEvent } from '../contract/call-event.ts';
import type { AmdEvent } from '../detection/amd-event.ts';
import { closingAmdEvents } from '../detection/closing-amd-events.ts';
import type { KeyTransport } from '../ports.ts';
import {
  amdEvent,
  answeredEvent,
  type CallProgress,
  dialingEvent,
  dtmfEvent,
  endEvent,
  ringingEvent,
} from './call-events.ts';
import {
  type EndCommand,
  endAfterAnswer,
  endBeforeAnswer,
  endOfExpiry,
  endOfFailure,
  endOfMachine,
  endOfMaxDuration,
  endOfRemoteBye,
  endOfRingTimeout,
  endOfVoicemail,
} from './call-outcome.ts';
import { type CallMachineContext, type CallMachineEvent, callSetup } from './call-setup.ts';

const answerNotStored = { by: 'gateway', reason: 'The answer could not be recorded' } as const;

export const stateDialing = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'leg.sent');
  const { event: stated, ...sequences } = dialingEvent(context, event.at, event.gateway);
  // The time to connect runs from the first INVITE, whichever gateway takes the call in the end.
  enqueue.assign({ sentAt: context.sentAt ?? event.at, ...sequences });
  enqueue({ type: 'append', params: { events: [stated], leg: event.leg } });
});

export const noteFailedAttempt = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.attemptFailed');
  return { failedAttempts: [...context.failedAttempts, event.attempt] };
});

export const stateRinging = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'leg.provisional');
  const { status, reason, sdp } = event;
  const response = { sipStatus: status, sipReason: reason, earlyMedia: sdp !== undefined };
  const { event: stated, ...sequences } = ringingEvent(context, event.at, response);
  enqueue.assign({ ringingAt: event.at, ...sequences });
  const leg = event.leg === undefined ? {} : { leg: event.leg };
  enqueue({ type: 'append', params: { events: [stated], ringingAt: event.at, ...leg } });
});

export const noteAnswer = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.answered');
  const { event: stated, ...sequences } = answeredEvent({ ...context, answeredAt: event.at });
  const { eventSequence, notificationSequence } = context;
  const detects = context.call.request.machineDetection !== 'disabled';
  return {
    answeredAt: event.at,
    answeredEvent: stated,
    beforeAnswer: { eventSequence, notificationSequence },
    leg: event.leg,
    detection: detects ? ('running' as const) : ('off' as const),
    ...sequences,
  };
});

/** The callee repeats its 200 until then. */
export const acknowledge = callSetup.enqueueActions(({ enqueue }) => {
  enqueue({ type: 'commandLine', params: { type: 'acknowledge' } });
});

/**
 * An answer that is not known to be stored was not stated: for the caller the call failed before it was answered. The database
 * may have stored it all the same; then it says so when the end comes, and the call is one that was answered.
 */
export const doubtAnswer = callSetup.enqueueActions(({ context, enqueue }) => {
  const { answeredAt, beforeAnswer, eventSequence, notificationSequence } = context;
  enqueue({
    type: 'commandLine',
    params: { type: 'hangUp', reason: 'answer could not be recorded' },
  });
  enqueue.assign({
    ...(answeredAt === undefined
      ? {}
      : { doubtfulAnswer: { answeredAt, eventSequence, notificationSequence } }),
    ...beforeAnswer,
    answeredAt: undefined,
    detection: 'off',
    end: endBeforeAnswer(answerNotStored, context.clock.now()),
  });
});

export const stateAmd = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.amd');
  const { answeredAt } = context;
  if (answeredAt === undefined || context.detection !== 'running') return;
  if (isOverruled(context, event.amd)) return;
  const amdEvents = [...context.amdEvents, event.amd];
  // What is told after the call's end happened at its end: times do not run backwards.
  const at = context.end === undefined ? event.at : earlier(event.at, context.end.at);
  const { event: stated, ...sequences } = amdEvent(
    { ...context, answeredAt, amdEvents },
    at,
    event.amd,
  );
  enqueue.assign({
    amdEvents,
    detection: event.amd.event === 'amd_stopped' ? 'stopped' : 'running',
    ...sequences,
  });
  enqueue({ type: 'append', params: { events: [stated] } });
});

export const notePlan = callSetup.assign(({ event }) => {
  assertEvent(event, 'media.plan');
  const { report } = event;
  if (report.kind === 'held') return { heldBy: report.by };
  if (report.kind === 'done') return { hasPlans: false };
  // Detection listens to the one who comes after a call screening.
  return report.kind === 'armed' ? { detection: 'running' as const, round: report.round } : {};
});

/** The media worker owed `amd_stopped` and did not say it in time: it is said for it, so that the order always holds. */
export const stateAmdStopped = callSetup.enqueueActions(({ context, enqueue }) => {
  const { answeredAt } = context;
  if (answeredAt === undefined || context.detection !== 'running') return;
  const at = context.end?.at ?? context.clock.now();
  const { event, progress } = stoppedEvent({ ...context, answeredAt }, at, context.round);
  enqueue.assign({ detection: 'stopped', ...progress });
  enqueue({ type: 'append', params: { events: [event] } });
});

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

export const buildEnd = callSetup.assign(({ context }) => {
  const end =
    context.end ?? endBeforeAnswer({ by: 'gateway', reason: 'Unknown' }, context.clock.now());
  const { event, ...sequences } = endEvent(context, end);
  return { endEvent: event, ...sequences };
});

/** In place of the end, where SQL holds the answer, which was not published then: detection never began. */
export function endIfAnswered(context: CallMachineContext): readonly CallEvent[] | undefined {
  const { doubtfulAnswer, answeredEvent: stated, end } = context;
  if (doubtfulAnswer === undefined || stated === undefined || end === undefined) {
    return undefined;
  }
  const answered = { ...context, ...doubtfulAnswer };
  const detects = context.call.request.machineDetection !== 'disabled';
  const stopped = detects ? stoppedEvent(answered, end.at) : undefined;
  const last = endEvent(
    { ...answered, ...stopped?.progress },
    endAfterAnswer(answerNotStored, end.at),
  );
  return [stated, ...(stopped === undefined ? [] : [stopped.event]), last.event];
}

function stoppedEvent(progress: CallProgress & { readonly answeredAt: Date }, at: Date, round = 1) {
  const { answeredAt } = progress;
  const [, amd] = closingAmdEvents('call-ended', at.getTime() - answeredAt.getTime(), round);
  const amdEvents = [...progress.amdEvents, amd];
  const { event, ...sequences } = amdEvent({ ...progress, amdEvents }, at, amd);
  return { event, progress: { amdEvents, ...sequences } };
}

export const endByFailure = callSetup.assign(({ event }) => {
  assertEvent(event, 'leg.failed');
  const { failure } = event;
  const isRefused = failure.kind === 'response';
  return { end: endOfFailure(failure), ...(isRefused ? { legIsOver: true as const } : {}) };
});

export const endByLeg = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'leg.ended');
  const { at, by, reason } = event.end;
  return {
    end:
      context.end ??
      (by === 'remote' ? endOfRemoteBye(at) : endAfterAnswer({ by: 'gateway', reason }, at)),
    // Its BYE was answered. What was lost may be up all the same.
    ...(by === 'remote' ? { legIsOver: true } : {}),
  };
});

export const cancelByQueueTimeout = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfExpiry(context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'cancel', reason: 'queue time-out' } });
});

export const cancelByRingTimeout = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfRingTimeout(context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'cancel', reason: 'ring time-out' } });
});

export const cancelByCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.end');
  enqueue.assign({ end: endBeforeAnswer(event.command, context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'cancel', reason: event.command.by } });
});

export const hangUpByCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.end');
  // While the answer is being stored the far end may have been first.
  enqueue.assign({ end: context.end ?? endAfterAnswer(event.command, context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: event.command.by } });
});

/** The message was left, or there was no machine to leave one with. */
export const hangUpByPlan = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.plan');
  const at = context.clock.now();
  const isLeft = event.report.kind === 'over' && event.report.outcome === 'voicemail-left';
  enqueue.assign({ end: isLeft ? endOfVoicemail(at) : endOfMachine(at) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: 'voicemail' } });
});

export const hangUpOnMachine = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfMachine(context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: 'machine' } });
});

export const hangUpOnFailure = callSetup.enqueueActions(({ context, event, enqueue }) => {
  const reason =
    event.type === 'media.failed' ? event.reason : 'Answering machine detection failed';
  const command: EndCommand = { by: 'gateway', reason };
  const at = context.clock.now();
  const answered = context.answeredAt !== undefined;
  enqueue.assign({ end: answered ? endAfterAnswer(command, at) : endBeforeAnswer(command, at) });
  enqueue({ type: 'commandLine', params: { type: answered ? 'hangUp' : 'cancel', reason } });
});

export const hangUpOnMaxDuration = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfMaxDuration(context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: 'maximum duration' } });
});

export function earlier(one: Date, other: Date): Date {
  return one < other ? one : other;
}

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
