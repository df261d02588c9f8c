// What follows from each type of event: the notification that its receiver gets, the context that bot flows read, and a line
// for people. One row a type; a type without its row does not compile. Pure, so that the same event gives the same body to
// the byte wherever it is built.

import type { CallContext } from './call-context.ts';
import {
  type CallEvent,
  type CallEventType,
  callEventData,
  type DataOf,
  type EndData,
  type EventOf,
} from './call-event.ts';
import {
  afterFailure,
  describeDetection,
  describeDialing,
  describeEnd,
  describePlayback,
  describeStreamFailure,
  endLine,
  seconds,
} from './event-lines.ts';
import type {
  EventNotification,
  NotificationBody,
  NotificationEnvelope,
  StatusNotification,
} from './notification.ts';
import type { SelectedEventType } from './notify-events.ts';
import { matching } from './schema.ts';

type Members = Omit<StatusNotification, 'status' | keyof NotificationEnvelope>;

type Row<Type extends CallEventType> = {
  /** `as-selected`: only where the request selects this type, and then the event as it is. */
  readonly notification:
    | 'as-selected'
    | { readonly status: StatusNotification['status']; members(data: DataOf<Type>): Members };
  /** `unchanged`: the context is what it was. */
  readonly context: 'unchanged' | ((data: DataOf<Type>) => CallContext);
  /** For people who ask for their call, after the time and the type. */
  line(data: DataOf<Type>): string;
  /** For people who watch the gateway: no digits, nothing that was said. */
  watched(event: EventOf<Type>): string;
};

type EventTable = {
  readonly [Type in CallEventType]: Row<Type> & {
    readonly notification: Type extends SelectedEventType ? 'as-selected' : object;
  };
};

export const eventTable: EventTable = {
  queued: {
    notification: 'as-selected',
    context: 'unchanged',
    line: () => '',
    watched: ({ appId, botId, data: { trunk } }) =>
      `queued by ${appId} for bot ${botId}${trunk === undefined ? '' : `, trunk ${trunk}`}`,
  },
  dialing: {
    notification: 'as-selected',
    context: 'unchanged',
    line: (data) => `by ${data.trunk ?? 'no trunk'} to ${data.gateway}${afterFailure(data)}`,
    watched: ({ data }) => describeDialing(data),
  },
  ringing: {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ sipStatus, sipReason }) => `${sipStatus} ${sipReason}`,
    watched: ({ data: { sipStatus, sipReason, earlyMedia } }) =>
      `ringing (${sipStatus} ${sipReason}${earlyMedia ? ', early media' : ''})`,
  },
  answered: {
    notification: { status: 'Answered', members: answerMembers },
    context: ({ context }) => context,
    line: () => '',
    watched: ({ data }) => `answered after ringing ${seconds(data.ringDurationInMS)}`,
  },
  amd: {
    notification: {
      status: 'Call-In-Progress',
      members: (data) => {
        const { event, ...evidence } = data.amd;
        return { ...answerMembers(data), machineDetection: event, amd: evidence };
      },
    },
    context: ({ context }) => context,
    line: ({ amd }) => amd.event,
    watched: ({ data }) => describeDetection(data.amd),
  },
  dtmf: {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ digit }) => digit,
    watched: () => 'a digit was pressed',
  },
  'dtmf-sent': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ digits, complete }) => `${digits}${complete ? '' : ', and no more'}`,
    watched: ({ data: { complete } }) => `keys were pressed${complete ? '' : ', not all of them'}`,
  },
  'stream-started': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ connection, openMs }) => `connection ${connection}, ${openMs} ms`,
    watched: ({ data: { openMs } }) => `the bot has the audio after ${openMs} ms`,
  },
  'stream-stopped': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ reason }) => reason,
    watched: ({ data: { reason } }) => `the audio stream is over: ${reason}`,
  },
  'stream-failed': {
    notification: 'as-selected',
    context: 'unchanged',
    line: describeStreamFailure,
    watched: ({ data }) => `the bot has no audio: ${describeStreamFailure(data)}`,
  },
  'playback-started': {
    notification: 'as-selected',
    context: 'unchanged',
    line: describePlayback,
    watched: ({ data }) => `plays ${describePlayback(data)}`,
  },
  'playback-finished': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ sound, reason, playedMs }) => `${sound}, ${reason} after ${seconds(playedMs)}`,
    watched: ({ data: { sound, reason, playedMs } }) =>
      `has played ${seconds(playedMs)} of ${sound}: ${reason}`,
  },
  'transfer-ringing': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ to, sipStatus }) => `${to}: ${sipStatus}`,
    watched: ({ data: { mode, sipStatus } }) => `transfer (${mode}) rings: ${sipStatus}`,
  },
  'transfer-answered': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ to, mode }) => `${to} (${mode})`,
    watched: ({ data: { mode } }) => `transfer (${mode}): connected`,
  },
  'transfer-completed': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ to, durationMs = 0 }) => `${to}, ${seconds(durationMs)}`,
    watched: ({ data: { outcome, durationMs = 0 } }) =>
      `transfer over after ${seconds(durationMs)}: ${outcome}`,
  },
  'transfer-failed': {
    notification: 'as-selected',
    context: 'unchanged',
    line: ({ to, reason }) => `${to}: ${reason}`,
    watched: ({ data: { outcome, reason } }) => `transfer failed: ${outcome} (${reason})`,
  },
  completed: {
    notification: { status: 'completed', members: endMembers },
    context: ({ context }) => context,
    line: endLine,
    watched: ({ data }) => describeEnd('completed', data),
  },
  failed: {
    notification: { status: 'Failed', members: endMembers },
    context: ({ context }) => context,
    line: endLine,
    watched: ({ data }) => describeEnd('failed', data),
  },
};

/** The row and the event go together; TypeScript cannot follow that through a union. */
function rowOf<Type extends CallEventType>(event: EventOf<Type>): Row<Type> {
  return eventTable[event.type];
}

/** @returns undefined if no receiver is notified of this event. */
export function notificationOf(event: CallEvent): NotificationBody | undefined {
  const { notification } = rowOf(event);
  // The call gives the sequence; without one the event was not asked for, or there is no receiver.
  const sequence = event.data.notificationSequence;
  if (sequence === undefined) return undefined;
  const { conversationId, callId, sid, botId } = event;
  const ids = { eventId: event.id, sequence, timestamp: event.time, callId, sid, botId };
  if (notification !== 'as-selected') {
    return {
      status: notification.status,
      conversationId,
      ...notification.members(event.data),
      ...ids,
    };
  }
  // The rows of the other types have a status; TypeScript cannot follow that through a union.
  return { status: 'Event', conversationId, event: event as EventNotification['event'], ...ids };
}

/** Undefined: it is what it was. */
export function contextOf(event: CallEvent): CallContext | undefined {
  const { context } = rowOf(event);
  return context === 'unchanged' ? undefined : context(event.data);
}

export function watchedLineOf(event: CallEvent): string {
  return rowOf(event).watched(event);
}

/** Of an event as a timeline has it; nothing where another version wrote what this one does not know. */
export function lineOf(type: string, data: unknown): string {
  if (!Object.hasOwn(callEventData, type)) return '';
  const known = type as CallEventType;
  const read = matching(callEventData[known], data);
  return read.ok ? (eventTable[known] as Row<CallEventType>).line(read.value) : '';
}

function answerMembers(data: DataOf<'answered'> | DataOf<'amd'>): Members {
  return {
    reason: '200 OK',
    reasonCode: 'OK',
    callConnectTime: data.callConnectTime,
    ringDurationInMS: data.ringDurationInMS,
    connectDurationInMS: data.connectDurationInMS,
  };
}

function endMembers(data: EndData): Members {
  return {
    reason: data.reason,
    reasonCode: data.reasonCode,
    ...(data.callConnectTime === undefined ? {} : { callConnectTime: data.callConnectTime }),
    ringDurationInMS: data.ringDurationInMS,
    connectDurationInMS: data.connectDurationInMS,
    // In seconds twice, as the specification spells it in two places.
    ...(data.callDurationS === undefined
      ? {}
      : { callDuration: data.callDurationS, duration: String(data.callDurationS) }),
    ...(data.callDurationMs === undefined ? {} : { callDurationMs: data.callDurationMs }),
    callDisconnectTime: data.callDisconnectTime,
    ...(data.sessionId === undefined ? {} : { sessionId: data.sessionId }),
    ...(data.machineDetection === undefined ? {} : { machineDetection: data.machineDetection }),
    ...(data.playedMs === undefined ? {} : { playedMs: data.playedMs }),
    ...(data.voicemail === undefined ? {} : { voicemail: data.voicemail }),
    outcome: data.outcome,
    ...(data.transfer === undefined ? {} : { transfer: data.transfer }),
    ...(data.sipStatus === undefined ? {} : { sipStatus: data.sipStatus }),
  };
}
