// Derives the notification body, the call context and the texts shown to people from an event. The
// functions are pure, so every process builds the same bytes from the same event.

import { greetingOf } from '../detection/amd-event.ts';
import { endFactsIn } from '../life/end-facts.ts';
import type { CallContext } from './call-context.ts';
import {
  type CallEvent,
  type CallEventType,
  type CallFact,
  callEvents,
  type DataOf,
  type EventOf,
} from './call-event.ts';
import type { CallEventEnvelope } from './definitions.ts';
import type {
  EventNotification,
  NotificationBody,
  NotificationEnvelope,
  StatusNotification,
} from './notification.ts';
import type { TypeWithStatus } from './notify-events.ts';
import { matching } from './schema.ts';

type Members = Omit<StatusNotification, 'status' | keyof NotificationEnvelope>;

type StatusRow<Type extends TypeWithStatus> = {
  readonly status: StatusNotification['status'];
  members(data: DataOf<Type>): Members;
};

/**
 * The event types that have their own notification status. For all other types, a notification is
 * only sent if the request selects the type, and it contains the event itself.
 */
export const statusRows: { readonly [Type in TypeWithStatus]: StatusRow<Type> } = {
  answered: {
    status: 'Answered',
    members: (data) => ({ ...answerMembers(data), ...connectedIdentityIn(data) }),
  },
  amd: {
    status: 'Call-In-Progress',
    members: (data) => {
      const { event, ...evidence } = data.amd;
      return { ...answerMembers(data), machineDetection: event, amd: evidence };
    },
  },
  completed: { status: 'completed', members: endMembers },
  failed: { status: 'Failed', members: endMembers },
};

type EventWithStatus = { [Type in TypeWithStatus]: EventOf<Type> }[TypeWithStatus];

function hasStatus(event: CallEvent): event is EventWithStatus {
  return Object.hasOwn(statusRows, event.type);
}

/** The row belongs to the event's type, but TypeScript can't follow that through a union. */
function rowOf<Type extends TypeWithStatus>({ type }: EventOf<Type>): StatusRow<Type> {
  return statusRows[type];
}

/** @returns undefined if no notification is sent for this event */
export function notificationOf(event: CallEvent): NotificationBody | undefined {
  // The call assigns the sequence. It's missing if the request doesn't select the event or has no
  // notify URL.
  const sequence = event.data.notificationSequence;
  if (sequence === undefined) return undefined;
  const { conversationId, callId, sid, botId } = event;
  const ids = { eventId: event.id, sequence, timestamp: event.time, callId, sid, botId };
  if (hasStatus(event)) {
    const row = rowOf(event);
    return { status: row.status, conversationId, ...row.members(event.data), ...ids };
  }
  // Only selected types are left here, but TypeScript can't follow that through a union.
  return { status: 'Event', conversationId, event: event as EventNotification['event'], ...ids };
}

/**
 * Returns true if the call has another context after the event. A call that nobody answered has a
 * context from its end on.
 */
export function changesContext(type: CallEventType): boolean {
  return type === 'answered' || type === 'amd' || type === 'failed';
}

/**
 * Builds a call's context from its events so far, in order.
 *
 * @param metadata the metadata of the call's request
 */
export function contextOf(
  metadata: CallContext['metadata'],
  events: readonly CallFact[],
): CallContext {
  const amdEvents = events.flatMap((event) => (event.type === 'amd' ? [event.data.amd] : []));
  const machine = amdEvents.find((event) => event.event === 'amd_machine_detected');
  const greeting = greetingOf(amdEvents);
  const answer = events.find((event) => event.type === 'answered')?.data;
  return {
    session: {
      UserSession: {
        amd: amdEvents.map((event) => event.event),
        amdInfo: {
          ...(amdEvents.length > 0 ? { amdEvents } : {}),
          ...(greeting === undefined ? {} : { amdGreeting: greeting }),
          ...(machine === undefined ? {} : { amdReason: machine.reason }),
          ...(answer === undefined
            ? {}
            : {
                amdRingDurationInMs: answer.ringDurationInMS,
                amdConnectDurationInMs: answer.connectDurationInMS,
              }),
        },
      },
    },
    metadata,
  };
}

/**
 * The texts that a feature defines for an event. `data` belongs to the type, but TypeScript can't
 * follow that through a union.
 */
type Words = {
  line(data: unknown): string;
  watched(data: unknown, envelope: CallEventEnvelope): string;
};
const wordsOf = (type: CallEventType): Words => callEvents[type] as unknown as Words;

export function watchedLineOf(event: CallEvent): string {
  return wordsOf(event.type).watched(event.data, event);
}

/** Returns an event's timeline text, or an empty string if this version doesn't know the event. */
export function lineOf(type: string, data: unknown): string {
  if (!Object.hasOwn(callEvents, type)) return '';
  const known = type as CallEventType;
  const read = matching(callEvents[known].data, data);
  return read.ok ? wordsOf(known).line(read.value) : '';
}

function answerMembers(data: DataOf<'answered' | 'amd'>): Members {
  return {
    reason: '200 OK',
    reasonCode: 'OK',
    callConnectTime: data.callConnectTime,
    ringDurationInMS: data.ringDurationInMS,
    connectDurationInMS: data.connectDurationInMS,
  };
}

function endMembers(data: DataOf<'completed'>): Members {
  return {
    reason: data.reason,
    reasonCode: data.reasonCode,
    ...(data.callConnectTime === undefined ? {} : { callConnectTime: data.callConnectTime }),
    ringDurationInMS: data.ringDurationInMS,
    connectDurationInMS: data.connectDurationInMS,
    // The specification has two names for the duration in seconds, so we send both.
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
    ...(data.abandoned === undefined ? {} : { abandoned: data.abandoned }),
    ...(data.optedOut === undefined ? {} : { optedOut: data.optedOut }),
    ...summariesIn(data),
    ...(data.sipStatus === undefined ? {} : { sipStatus: data.sipStatus }),
    ...endFactsIn(data),
    ...refusalIn(data),
    ...connectedIdentityIn(data),
  };
}

function summariesIn({ transfer, quality, recording }: DataOf<'completed'>) {
  return {
    ...(transfer === undefined ? {} : { transfer }),
    ...(quality === undefined ? {} : { quality }),
    ...(recording === undefined ? {} : { recording }),
  };
}

function refusalIn({ rule, notBefore }: DataOf<'completed'>) {
  return {
    ...(rule === undefined ? {} : { rule }),
    ...(notBefore === undefined ? {} : { notBefore }),
  };
}

function connectedIdentityIn({ connectedIdentity }: { readonly connectedIdentity?: string }) {
  return connectedIdentity === undefined ? {} : { connectedIdentity };
}
