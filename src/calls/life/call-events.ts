// Builds a call's events from its progress. These functions are pure, so that the machine, the
// intake, commands to queued calls and crash recovery all build identical events.

import type { AcceptedCall } from '../call-types.ts';
import {
  type CallEvent,
  callEventId,
  type DataOf,
  type EventOf,
  type TerminalEvent,
} from '../contract/call-event.ts';
import type { CallIdentity } from '../contract/identity.ts';
import type { SelectedEventType } from '../contract/notify-events.ts';
import { type AmdEvent, verdictOf } from '../detection/amd-event.ts';
import { nothingPlayed, type PlaybackProgress, playedMembers } from '../playback/playback.ts';
import {
  nothingRecorded,
  type RecordingProgress,
  recordingMembers,
} from '../recording/recording-progress.ts';
import { termsOf } from '../rules/call-terms.ts';
import type { CallEvidence } from '../rules/evidence.ts';
import type { TransferSummary } from '../transfer/transfer-contract.ts';
import type { AnswerTimes, FailedAttempt } from './call-contract.ts';
import type { CallEnd } from './call-outcome.ts';
import type { CallQuality } from './call-quality.ts';
import { type Cause, endFactsIn } from './end-facts.ts';

/** What we know about a call so far. */
export type CallProgress = {
  readonly call: AcceptedCall;
  readonly eventSequence: number;
  readonly notificationSequence: number;
  /** Time at which the first INVITE was sent. Undefined until then. */
  readonly sentAt?: Date | undefined;
  readonly ringingAt?: Date | undefined;
  readonly answeredAt?: Date | undefined;
  /** The identity of whoever was reached, as the carrier last stated it. */
  readonly connectedIdentity?: string | undefined;
  /** The cause in an 18x. It explains the end of a call that nobody answers. */
  readonly earlyCause?: Cause | undefined;
  readonly amdEvents: readonly AmdEvent[];
  readonly failedAttempts: readonly FailedAttempt[];
  readonly playback: PlaybackProgress;
  readonly recording: RecordingProgress;
  /** How the call sounded. Undefined before the end, and if nothing was heard of the person. */
  readonly quality?: CallQuality | undefined;
  /** True if nobody was connected in time to a person who answered. */
  readonly isAbandoned?: boolean;
  /** The last transfer's result. Undefined before its answer or failure. */
  readonly transfer?: TransferSummary | undefined;
  /** What the call's record will need. */
  readonly evidence: CallEvidence;
};

/** Returns the progress of a newly accepted call. Its only event so far is `queued`. */
export function progressOfAccepted(call: AcceptedCall): CallProgress {
  const { event: _queued, ...sequences } = nextQueuedEvent(call);
  return {
    call,
    ...sequences,
    ...{ amdEvents: [], failedAttempts: [], playback: nothingPlayed, recording: nothingRecorded },
    evidence: {},
  };
}

/** The sequence numbers of the last event and the last notification. */
export type Sequences = { readonly eventSequence: number; readonly notificationSequence: number };
export type NextEvent<Event extends CallEvent = CallEvent> = { readonly event: Event } & Sequences;

export function queuedEvent(call: AcceptedCall): CallEvent {
  return nextQueuedEvent(call).event;
}

function nextQueuedEvent(call: AcceptedCall): NextEvent {
  const { trunk } = call.request;
  const noEventYet = { call, eventSequence: 0, notificationSequence: 0 };
  const data = trunk === undefined ? {} : { trunk };
  return nextEvent(noEventYet, 'queued', call.acceptedAt, data);
}

export function dialingEvent(progress: CallProgress, at: Date, gateway: string): NextEvent {
  const { trunk } = progress.call.request;
  return nextEvent(progress, 'dialing', at, {
    gateway,
    attempt: progress.failedAttempts.length + 1,
    ...(trunk === undefined ? {} : { trunk }),
    ...failedAttemptsOf(progress),
  });
}

export function ringingEvent(
  progress: CallProgress,
  at: Date,
  { sipStatus, sipReason, earlyMedia }: DataOf<'ringing'>,
): NextEvent {
  return nextEvent(progress, 'ringing', at, { sipStatus, sipReason, earlyMedia });
}

export function answeredEvent(progress: CallProgress & { readonly answeredAt: Date }): NextEvent {
  const { answeredAt, call } = progress;
  const isNotified = call.request.notifyUrl !== undefined;
  return nextEventWith<EventOf<'answered'>>(
    progress,
    'answered',
    answeredAt,
    isNotified,
    (number) => ({
      ...answerTimes(progress, answeredAt),
      ...connectedIdentityIn(progress),
      ...number,
    }),
  );
}

export function endEvent(progress: CallProgress, end: CallEnd): NextEvent<TerminalEvent> {
  const { call, answeredAt } = progress;
  const type = answeredAt === undefined ? 'failed' : 'completed';
  const isNotified = call.request.notifyUrl !== undefined;
  return nextEventWith<TerminalEvent>(progress, type, end.at, isNotified, (number) => ({
    outcome: end.outcome,
    reason: end.reason,
    reasonCode: end.reasonCode,
    ...(end.sipStatus === undefined ? {} : { sipStatus: end.sipStatus }),
    ...endFactsIn({ ...earlyCauseIn(progress), ...end.facts }),
    ...refusalIn(end),
    ...connectedIdentityIn(progress),
    ringDurationInMS: ringDuration(progress, answeredAt ?? end.at),
    connectDurationInMS: connectDuration(progress),
    callDisconnectTime: end.at.toISOString(),
    ...(answeredAt === undefined ? {} : completedMembers(progress, answeredAt, end.at)),
    ...(end.outcome === 'machine' ? { machineDetected: true } : {}),
    ...(progress.isAbandoned === true ? { abandoned: true } : {}),
    ...(progress.evidence.optedOut === undefined ? {} : { optedOut: true }),
    ...playedMembers(progress.playback),
    ...recordingMembers(progress.recording),
    ...failedAttemptsOf(progress),
    ...number,
  }));
}

function refusalIn({ refusal }: CallEnd) {
  if (refusal === undefined) return {};
  const { rule, notBefore } = refusal;
  return { rule, ...(notBefore === undefined ? {} : { notBefore: notBefore.toISOString() }) };
}

function connectedIdentityIn({ connectedIdentity }: CallProgress) {
  return connectedIdentity === undefined ? {} : { connectedIdentity };
}

/** The answer disproves an earlier cause. */
function earlyCauseIn({ answeredAt, earlyCause }: CallProgress) {
  return answeredAt === undefined && earlyCause !== undefined ? { cause: earlyCause } : {};
}

function completedMembers(progress: CallProgress, answeredAt: Date, endedAt: Date) {
  const verdict = verdictOf(progress.amdEvents);
  return {
    callConnectTime: answeredAt.toISOString(),
    callDurationS: Math.round(elapsed(answeredAt, endedAt) / 1000),
    callDurationMs: elapsed(answeredAt, endedAt),
    sessionId: sessionIdOf(progress.call),
    ...(verdict === undefined ? {} : { machineDetection: verdict }),
    ...(progress.transfer === undefined ? {} : { transfer: progress.transfer }),
    ...(progress.quality === undefined ? {} : { quality: progress.quality }),
  };
}

/**
 * Returns the id of the call's conversation session. The id is derived from the call id, so every
 * process gets the same one.
 */
export function sessionIdOf(call: Pick<CallIdentity, 'callId'>): string {
  return `ss-${call.callId.replace(/^call-/, '')}`;
}

/** @returns undefined if `sessionId` isn't a call's session id */
export function callIdOfSession(sessionId: string): string | undefined {
  return sessionId.startsWith('ss-') ? `call-${sessionId.slice('ss-'.length)}` : undefined;
}

type NumberedCall = Sequences & { readonly call: AcceptedCall };

/**
 * Bounds the number of notifications that can pile up for an unresponsive receiver. Beyond this
 * number, we only send notifications for events that have their own status. `CallLimits` separately
 * bounds the events that the far end or a bot could cause endlessly (digits, connections). Events
 * caused by commands aren't bounded in any other way, because the application asked for them.
 */
const maxSelectedNotifications = 2_500;

/**
 * Builds the next event, for types that don't have a notification status of their own. The event
 * gets a notification number if the request selects its type.
 */
export function nextEvent<Type extends SelectedEventType>(
  progress: NumberedCall,
  type: Type,
  at: Date,
  data: DataOf<Type>,
): NextEvent {
  const { notifyUrl, notifyEvents = [] } = progress.call.request;
  const isNotified =
    notifyEvents.includes(type) &&
    notifyUrl !== undefined &&
    progress.notificationSequence < maxSelectedNotifications;
  return nextEventWith<CallEvent>(progress, type, at, isNotified, (number) => ({
    ...data,
    ...number,
  }));
}

/**
 * Builds the next event. `isNotified` decides whether it gets a notification number. `data`
 * receives that number and the call's terms, and returns the event's data, so that they appear
 * where the API documents show them.
 */
export function nextEventWith<Event extends CallEvent>(
  progress: NumberedCall,
  type: Event['type'],
  at: Date,
  isNotified: boolean,
  data: (number: { readonly notificationSequence?: number }) => Event['data'],
): NextEvent<Event> {
  const { callId, sid, conversationId, botId, accountId, appId } = progress.call;
  const eventSequence = progress.eventSequence + 1;
  const notificationSequence = progress.notificationSequence + (isNotified ? 1 : 0);
  const event = {
    id: callEventId(callId, type, eventSequence),
    time: at.toISOString(),
    eventSequence,
    ...{ callId, sid, conversationId, botId, accountId, appId },
    type,
    data: data({
      ...termsOf(progress.call.request),
      ...(isNotified ? { notificationSequence } : {}),
    }),
  };
  // `data` belongs to `type`, but TypeScript can't follow that through a union.
  return { event: event as unknown as Event, eventSequence, notificationSequence };
}

/**
 * Returns `at`, or the instant of the call's end if that is earlier. The end is always the last
 * event and times must not run backwards, so anything reported after it gets the time of the end.
 */
export function noLaterThanEnd({ end }: { readonly end?: CallEnd }, at: Date): Date {
  return end === undefined || at < end.at ? at : end.at;
}

function failedAttemptsOf({ failedAttempts }: CallProgress): {
  failedAttempts?: readonly FailedAttempt[];
} {
  return failedAttempts.length === 0 ? {} : { failedAttempts };
}

export function answerTimes(progress: CallProgress, answeredAt: Date): AnswerTimes {
  return {
    callConnectTime: answeredAt.toISOString(),
    ringDurationInMS: ringDuration(progress, answeredAt),
    connectDurationInMS: connectDuration(progress),
  };
}

function ringDuration(progress: CallProgress, until: Date): number {
  return progress.ringingAt === undefined ? 0 : elapsed(progress.ringingAt, until);
}

function connectDuration({ sentAt, answeredAt }: CallProgress): number {
  return sentAt === undefined || answeredAt === undefined ? 0 : elapsed(sentAt, answeredAt);
}

/** Returns the elapsed milliseconds, which are never negative even if the wall clock steps back. */
function elapsed(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime());
}
