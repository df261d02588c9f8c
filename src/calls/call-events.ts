// Facts that a call states, as they stand on JetStream: `<prefix>.call.<accountId>.<botId>.<callId>.<type>`.
// Past-tense, self-contained (a consumer needs no other source to build a notification, a timeline row or the
// context), and with ids that derive from the call id, so that a fact published again is recognised.

import type {
  AmdEvent,
  AmdEventName,
  CallContext,
  CallIdentity,
  CallOutcome,
  ReasonCode,
} from './call-types.ts';

export const callEventTypes = [
  'queued',
  'dialing',
  'ringing',
  'answered',
  'amd',
  'dtmf',
  'completed',
  'failed',
] as const;
export type CallEventType = (typeof callEventTypes)[number];

/**
 * Set on facts that are notified (answered, subscribed AMD events, the end) when the call has a notify URL:
 * 1, 2, … over this call's notifications. Given by the call, so that the body of an event never depends on who builds it.
 */
export type NotificationSequence = { readonly notificationSequence?: number };

export type QueuedData = { readonly trunk?: string };
/** What came of an INVITE over one gateway, after which another gateway was tried. */
export type FailedAttempt = {
  /** host:port, and the transport where it is not UDP */
  readonly gateway: string;
  readonly sipStatus?: number;
  /** Phrase without the status, or what failed. */
  readonly reason: string;
  readonly durationMs: number;
};

/** What a call tried before in vain, in order; left out where the first gateway took it. */
export type FailedAttempts = { readonly failedAttempts?: readonly FailedAttempt[] };

/** An INVITE left. There is one for each gateway that was tried, `attempt` counts them from 1. */
export type DialingData = FailedAttempts & {
  readonly trunk?: string;
  readonly gateway: string;
  readonly attempt: number;
};
export type RingingData = {
  readonly sipStatus: number;
  readonly sipReason: string;
  readonly earlyMedia: boolean;
};

/** Timing of the answer; repeated on every later fact of the call. Durations in ms, instants ISO 8601 UTC. */
export type AnswerTimes = {
  readonly callConnectTime: string;
  readonly ringDurationInMS: number;
  readonly connectDurationInMS: number;
};

export type AnsweredData = AnswerTimes & NotificationSequence & { readonly context: CallContext };
export type AmdData = AnswerTimes &
  NotificationSequence & { readonly amd: AmdEvent; readonly context: CallContext };
export type DtmfData = {
  readonly digit: string;
  readonly durationMs?: number;
  readonly source: 'rtp' | 'info';
};

/** The one terminal fact of a call, `completed` or `failed`. Claimed in SQL, published from there. */
export type EndData = NotificationSequence &
  FailedAttempts & {
    readonly outcome: CallOutcome;
    readonly reason: string;
    readonly reasonCode: ReasonCode;
    /** Absent where no SIP status led to the end. */
    readonly sipStatus?: number;
    /** Absent where the call was never answered. */
    readonly callConnectTime?: string;
    /** First 18x to the answer, or to the end; 0 without a ring. */
    readonly ringDurationInMS: number;
    /** INVITE to answer; 0 when never answered. */
    readonly connectDurationInMS: number;
    readonly callDisconnectTime: string;
    /** Whole seconds from answer to end; only on `completed`. */
    readonly callDurationS?: number;
    /** The same, not rounded. Absent too where an older version stated the end. */
    readonly callDurationMs?: number;
    /** Only on `completed`: `GET …/conversations/sessions/{sessionId}` is asked with it. */
    readonly sessionId?: string;
    /** The verdict where detection ran and has one, never `amd_stopped`. */
    readonly machineDetection?: AmdEventName;
    /** True when `machineDetection: disconnect` ended the call: the Status column says `machineDetected`. */
    readonly machineDetected?: boolean;
    readonly context: CallContext;
  };

type Envelope<Type extends CallEventType, Data> = CallIdentity & {
  readonly id: string;
  readonly type: Type;
  /** ISO 8601 UTC with milliseconds: when it happened, not when it was published. */
  readonly time: string;
  /** 1, 2, … over all facts of the call. */
  readonly eventSequence: number;
  readonly data: Data;
};

export type CallEvent =
  | Envelope<'queued', QueuedData>
  | Envelope<'dialing', DialingData>
  | Envelope<'ringing', RingingData>
  | Envelope<'answered', AnsweredData>
  | Envelope<'amd', AmdData>
  | Envelope<'dtmf', DtmfData>
  | Envelope<'completed', EndData>
  | Envelope<'failed', EndData>;

export type TerminalEvent = Extract<CallEvent, { type: 'completed' | 'failed' }>;

/** The id of a fact: by sequence, except the end, which has one id whoever states it (the call, or a recovery after a crash). */
export function callEventId(callId: string, type: CallEventType, eventSequence: number): string {
  const suffix = type === 'completed' || type === 'failed' ? 'end' : String(eventSequence);
  return `evt-${callId.replace(/^call-/, '')}-${suffix}`;
}
