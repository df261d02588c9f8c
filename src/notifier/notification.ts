// The body of a notification, from a fact: the specification's members in their canonical spelling, and ours beside
// them. Pure, so that the same fact gives the same body to the byte wherever it is built.

import type { AmdData, AnsweredData, CallEvent, EndData } from '../calls/call-events.ts';
import type { AmdEvidence } from '../calls/call-types.ts';

export type NotificationStatus = 'Answered' | 'Call-In-Progress' | 'completed' | 'Failed';

export type NotificationBody = {
  readonly status: NotificationStatus;
  readonly conversationId: string;
  readonly reason: string;
  readonly reasonCode: string;
  /** The instant of the answer; absent where the call was never answered. */
  readonly callConnectTime?: string;
  readonly ringDurationInMS: number;
  readonly connectDurationInMS: number;
  /** Whole seconds; `duration` is the same as a string, as the specification spells it in another place. */
  readonly callDuration?: number;
  readonly duration?: string;
  /** Ours: the same, not rounded. */
  readonly callDurationMs?: number;
  readonly callDisconnectTime?: string;
  readonly sessionId?: string;
  readonly machineDetection?: string;
  /** Ours from here on. The id is the same in every retry. */
  readonly eventId: string;
  /** 1, 2, … over the notifications of this call. */
  readonly sequence: number;
  readonly timestamp: string;
  readonly callId: string;
  readonly sid: string;
  readonly botId: string;
  readonly outcome?: string;
  readonly sipStatus?: number;
  readonly amd?: AmdEvidence;
};

/** Undefined: this fact is not notified. */
export function notificationOf(event: CallEvent): NotificationBody | undefined {
  switch (event.type) {
    case 'answered':
      return body(event, 'Answered', event.data, { ...answerTimes(event.data) });
    case 'amd': {
      const { event: name, ...evidence } = event.data.amd;
      return body(event, 'Call-In-Progress', event.data, {
        ...answerTimes(event.data),
        machineDetection: name,
        amd: evidence,
      });
    }
    case 'completed':
      return body(event, 'completed', event.data, endMembers(event.data));
    case 'failed':
      return body(event, 'Failed', event.data, endMembers(event.data));
    case 'queued':
    case 'dialing':
    case 'ringing':
    case 'dtmf':
      return undefined;
  }
}

type Ours =
  | 'status'
  | 'conversationId'
  | 'eventId'
  | 'sequence'
  | 'timestamp'
  | 'callId'
  | 'sid'
  | 'botId';

function body(
  event: CallEvent,
  status: NotificationStatus,
  data: { readonly notificationSequence?: number },
  members: Omit<NotificationBody, Ours>,
): NotificationBody | undefined {
  // The call gives the sequence; without one the fact was not subscribed to, or nobody is to be notified.
  if (data.notificationSequence === undefined) return undefined;
  return {
    status,
    conversationId: event.conversationId,
    ...members,
    eventId: event.id,
    sequence: data.notificationSequence,
    timestamp: event.time,
    callId: event.callId,
    sid: event.sid,
    botId: event.botId,
  };
}

function answerTimes(data: AnsweredData | AmdData) {
  return {
    reason: '200 OK',
    reasonCode: 'OK',
    callConnectTime: data.callConnectTime,
    ringDurationInMS: data.ringDurationInMS,
    connectDurationInMS: data.connectDurationInMS,
  };
}

function endMembers(data: EndData): Omit<NotificationBody, Ours> {
  return {
    reason: data.reason,
    reasonCode: data.reasonCode,
    ...(data.callConnectTime === undefined ? {} : { callConnectTime: data.callConnectTime }),
    ringDurationInMS: data.ringDurationInMS,
    connectDurationInMS: data.connectDurationInMS,
    ...(data.callDurationS === undefined
      ? {}
      : { callDuration: data.callDurationS, duration: String(data.callDurationS) }),
    ...(data.callDurationMs === undefined ? {} : { callDurationMs: data.callDurationMs }),
    callDisconnectTime: data.callDisconnectTime,
    ...(data.sessionId === undefined ? {} : { sessionId: data.sessionId }),
    ...(data.machineDetection === undefined ? {} : { machineDetection: data.machineDetection }),
    outcome: data.outcome,
    ...(data.sipStatus === undefined ? {} : { sipStatus: data.sipStatus }),
  };
}
