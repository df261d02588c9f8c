// Builds the events of a call from what is known of it. Pure: the machine, the intake, the control of queued calls and the
// recovery after a crash all write the same event in the same way.

import { type AcceptedCall, assertNever } from '../call-types.ts';
import type { CallContext } from '../contract/call-context.ts';
import {
  type AnswerTimes,
  type CallEvent,
  callEventId,
  type FailedAttempt,
  type TerminalEvent,
} from '../contract/call-event.ts';
import type { CallIdentity } from '../contract/identity.ts';
import { type AmdEvent, type AmdEventName, amdVerdicts } from '../detection/amd-event.ts';
import { nothingPlayed, type PlaybackProgress, playedMembers } from '../playback/playback.ts';
import type { StreamReport } from '../stream/stream.ts';
import type { TransferSummary } from '../transfer/transfer-summary.ts';
import type { CallEnd } from './call-outcome.ts';

/** What is known of a call so far; grows while it lives. */
export type CallProgress = {
  readonly call: AcceptedCall;
  /** Of the last event stated. */
  readonly eventSequence: number;
  /** Of the last event stated that is notified. */
  readonly notificationSequence: number;
  /** The first INVITE left. */
  readonly sentAt?: Date | undefined;
  readonly ringingAt?: Date | undefined;
  readonly answeredAt?: Date | undefined;
  readonly amdEvents: readonly AmdEvent[];
  /** Over gateways that were given up for the next one. */
  readonly failedAttempts: readonly FailedAttempt[];
  readonly playback: PlaybackProgress;
  /** What became of the last one. */
  readonly transfer?: TransferSummary | undefined;
};

/** An accepted call has stated one event, `queued`. */
export function progressOfAccepted(call: AcceptedCall): CallProgress {
  const { event: _queued, ...sequences } = statedQueued(call);
  return {
    call,
    ...sequences,
    ...{ amdEvents: [], failedAttempts: [], playback: nothingPlayed },
  };
}

/** Of the last event stated, and of the last notification. */
export type Sequences = { readonly eventSequence: number; readonly notificationSequence: number };
export type Stated<Event extends CallEvent = CallEvent> = { readonly event: Event } & Sequences;

export function queuedEvent(call: AcceptedCall): CallEvent {
  return statedQueued(call).event;
}

function statedQueued(call: AcceptedCall): Stated {
  const { trunk } = call.request;
  const nothingStated = { call, eventSequence: 0, notificationSequence: 0 };
  return stated(nothingStated, {
    ...header(nothingStated, 'queued', call.acceptedAt),
    type: 'queued',
    data: trunk === undefined ? {} : { trunk },
  });
}

export function dialingEvent(progress: CallProgress, at: Date, gateway: string): Stated {
  const { trunk } = progress.call.request;
  const event: CallEvent = {
    ...header(progress, 'dialing', at),
    type: 'dialing',
    data: {
      gateway,
      attempt: progress.failedAttempts.length + 1,
      ...(trunk === undefined ? {} : { trunk }),
      ...failedAttemptsOf(progress),
    },
  };
  return stated(progress, event);
}

export function ringingEvent(
  progress: CallProgress,
  at: Date,
  response: {
    readonly sipStatus: number;
    readonly sipReason: string;
    readonly earlyMedia: boolean;
  },
): Stated {
  const { sipStatus, sipReason, earlyMedia } = response;
  const event: CallEvent = {
    ...header(progress, 'ringing', at),
    type: 'ringing',
    data: { sipStatus, sipReason, earlyMedia },
  };
  return stated(progress, event);
}

export function answeredEvent(progress: CallProgress & { readonly answeredAt: Date }): Stated {
  const notified = progress.call.request.notifyUrl !== undefined;
  const event: CallEvent = {
    ...header(progress, 'answered', progress.answeredAt),
    type: 'answered',
    data: {
      ...answerTimes(progress, progress.answeredAt),
      ...nextNotification(progress, notified),
      context: callContext(progress),
    },
  };
  return numbered(progress, event, notified);
}

/** `progress.amdEvents` already holds `amd`, so that the context in the event does too. */
export function amdEvent(
  progress: CallProgress & { readonly answeredAt: Date },
  at: Date,
  amd: AmdEvent,
): Stated {
  const notified = isSubscribed(progress.call, amd.event);
  const event: CallEvent = {
    ...header(progress, 'amd', at),
    type: 'amd',
    data: {
      ...answerTimes(progress, progress.answeredAt),
      ...nextNotification(progress, notified),
      amd,
      context: callContext(progress),
    },
  };
  return numbered(progress, event, notified);
}

export function dtmfEvent(
  progress: CallProgress,
  at: Date,
  press: { readonly digit: string; readonly durationMs?: number; readonly source: 'rtp' | 'info' },
): Stated {
  const { digit, durationMs, source } = press;
  const event: CallEvent = {
    ...header(progress, 'dtmf', at),
    type: 'dtmf',
    data: { digit, source, ...(durationMs === undefined ? {} : { durationMs }) },
  };
  return stated(progress, event);
}

/** What becomes of a stream to a bot, and the commands that began and stopped it. */
export function streamEvent(
  progress: CallProgress,
  at: Date,
  report: StreamReport,
  commands: StreamCommands,
): Stated {
  return stated(progress, streamEventOf(progress, at, report, commands));
}

type StreamCommands = {
  readonly commandId?: string;
  readonly stopping?: { readonly stoppedBy?: string };
};

function streamEventOf(
  progress: CallProgress,
  at: Date,
  report: StreamReport,
  { commandId, stopping }: StreamCommands,
): CallEvent {
  const command = commandId === undefined ? {} : { commandId };
  switch (report.kind) {
    case 'opened': {
      const { connection, openMs } = report;
      const type = 'stream-started';
      return { ...header(progress, type, at), type, data: { ...command, connection, openMs } };
    }
    case 'broken':
    case 'lost': {
      const type = 'stream-failed';
      const data = { ...command, reason: report.reason, willRetry: report.kind === 'broken' };
      return { ...header(progress, type, at), type, data };
    }
    case 'stopped':
    case 'botLeft': {
      const type = 'stream-stopped';
      const reason = report.kind === 'botLeft' ? 'bot-closed' : report.reason;
      const data = { ...command, ...stopping, reason, ...report.counts };
      return { ...header(progress, type, at), type, data };
    }
    default:
      return assertNever(report);
  }
}

export function endEvent(progress: CallProgress, end: CallEnd): Stated<TerminalEvent> {
  const { call, answeredAt } = progress;
  const type = answeredAt === undefined ? 'failed' : 'completed';
  const notified = call.request.notifyUrl !== undefined;
  const verdict = verdictOf(progress.amdEvents);
  const event: TerminalEvent = {
    ...header(progress, type, end.at),
    type,
    data: {
      outcome: end.outcome,
      reason: end.reason,
      reasonCode: end.reasonCode,
      ...(end.sipStatus === undefined ? {} : { sipStatus: end.sipStatus }),
      ringDurationInMS: ringDuration(progress, answeredAt ?? end.at),
      connectDurationInMS: connectDuration(progress),
      callDisconnectTime: end.at.toISOString(),
      ...(answeredAt === undefined
        ? {}
        : {
            callConnectTime: answeredAt.toISOString(),
            callDurationS: Math.round(elapsed(answeredAt, end.at) / 1000),
            callDurationMs: elapsed(answeredAt, end.at),
            sessionId: sessionIdOf(call),
            ...(verdict === undefined ? {} : { machineDetection: verdict }),
            ...(progress.transfer === undefined ? {} : { transfer: progress.transfer }),
          }),
      ...(end.outcome === 'machine' ? { machineDetected: true } : {}),
      ...playedMembers(progress.playback),
      ...failedAttemptsOf(progress),
      ...nextNotification(progress, notified),
      context: callContext(progress),
    },
  };
  return numbered(progress, event, notified);
}

/** The session of the conversation that this call is; the same whichever process states the end. */
export function sessionIdOf(call: CallIdentity): string {
  return `ss-${call.callId.replace(/^call-/, '')}`;
}

/** Undefined: not a session of a call. */
export function callIdOfSession(sessionId: string): string | undefined {
  return sessionId.startsWith('ss-') ? `call-${sessionId.slice('ss-'.length)}` : undefined;
}

export function callContext(progress: CallProgress): CallContext {
  const { call, answeredAt, amdEvents } = progress;
  const machine = amdEvents.find((event) => event.event === 'amd_machine_detected');
  const greeting = greetingOf(amdEvents);
  return {
    session: {
      UserSession: {
        amd: amdEvents.map((event) => event.event),
        amdInfo: {
          ...(amdEvents.length > 0 ? { amdEvents } : {}),
          ...(greeting === undefined ? {} : { amdGreeting: greeting }),
          ...(machine === undefined ? {} : { amdReason: machine.reason }),
          ...(answeredAt === undefined
            ? {}
            : {
                amdRingDurationInMs: ringDuration(progress, answeredAt),
                amdConnectDurationInMs: connectDuration(progress),
              }),
        },
      },
    },
    metadata: call.request.metadata,
  };
}

/** What a machine said as far as it was understood: at the verdict it has often only begun. */
function greetingOf(events: readonly AmdEvent[]): string | undefined {
  const ofMachine = events.filter(
    ({ event }) => event === 'amd_machine_detected' || event === 'amd_machine_stopped_speaking',
  );
  return ofMachine.findLast(({ transcript }) => transcript !== undefined)?.transcript;
}

const verdicts: ReadonlySet<AmdEventName> = new Set(amdVerdicts);

/** What detection came to, in the last round that came to anything. */
export function verdictOf(events: readonly AmdEvent[]): AmdEventName | undefined {
  const rounds = [...new Set(events.map(({ round = 1 }) => round))].reverse();
  for (const last of rounds) {
    const verdict = verdictOfRound(events.filter(({ round = 1 }) => round === last));
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}

/** The first verdict, unless a later event took it back. Never `amd_stopped`. */
function verdictOfRound(events: readonly AmdEvent[]): AmdEventName | undefined {
  const correction = events.find((event) => event.corrects !== undefined);
  return correction?.event ?? events.find((event) => verdicts.has(event.event))?.event;
}

/** Left out of the request: every event is sent. An empty list: none. */
function isSubscribed(call: AcceptedCall, event: AmdEventName): boolean {
  const { notifyUrl, amdEventsSubscription } = call.request;
  return notifyUrl !== undefined && (amdEventsSubscription?.includes(event) ?? true);
}

export function header(
  progress: { readonly call: AcceptedCall; readonly eventSequence: number },
  type: CallEvent['type'],
  at: Date,
) {
  const { callId, sid, conversationId, botId, accountId, appId } = progress.call;
  const eventSequence = progress.eventSequence + 1;
  return {
    id: callEventId(callId, type, eventSequence),
    time: at.toISOString(),
    eventSequence,
    callId,
    sid,
    conversationId,
    botId,
    accountId,
    appId,
  };
}

/**
 * Bounds what a call may owe a receiver that is away. Digits, streams and transfers have bounds of
 * their own, which stay below this one; sounds that commands play have none. Later events are not
 * notified, except those with a status of their own.
 */
const maxSelectedNotifications = 2_500;

/** States an event without a status of its own: it is numbered if the request selects its type. */
export function stated(
  progress: Sequences & { readonly call: AcceptedCall },
  event: CallEvent,
): Stated {
  const { notifyUrl, notifyEvents = [] } = progress.call.request;
  const isSelected = notifyEvents.some((type) => type === event.type);
  const isNotified =
    isSelected &&
    notifyUrl !== undefined &&
    progress.notificationSequence < maxSelectedNotifications;
  const data = { ...event.data, ...nextNotification(progress, isNotified) };
  // The event keeps its type; TypeScript cannot follow that through a union.
  return numbered(progress, isNotified ? ({ ...event, data } as CallEvent) : event, isNotified);
}

function numbered<Event extends CallEvent>(
  progress: Sequences,
  event: Event,
  notified: boolean,
): Stated<Event> {
  return {
    event,
    eventSequence: event.eventSequence,
    notificationSequence: progress.notificationSequence + (notified ? 1 : 0),
  };
}

function failedAttemptsOf({ failedAttempts }: CallProgress): {
  failedAttempts?: readonly FailedAttempt[];
} {
  return failedAttempts.length === 0 ? {} : { failedAttempts };
}

function nextNotification(
  progress: Sequences,
  notified: boolean,
): { notificationSequence?: number } {
  return notified ? { notificationSequence: progress.notificationSequence + 1 } : {};
}

function answerTimes(progress: CallProgress, answeredAt: Date): AnswerTimes {
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

/** Never negative: wall clocks step back. */
function elapsed(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime());
}
