// An example of each event, all of made-up calls: what the AsyncAPI document shows and `offhook webhooks test` sends. A type
// without its example does not compile; that each matches its schema is a test's to say.

import type { AmdEvent } from '../detection/amd-event.ts';
import type { CallContext } from './call-context.ts';
import { type CallEvent, type CallEventType, callEventId, type DataOf } from './call-event.ts';
import type { CallId, CallIdentity } from './identity.ts';

const person: AmdEvent = {
  event: 'amd_human_detected',
  reason: 'short-greeting',
  elapsedMs: 1_640,
  words: 2,
  confidence: 0.93,
  speechMs: 620,
  pauseMs: 700,
};

const answer = {
  callConnectTime: '2026-11-20T09:00:04.310Z',
  ringDurationInMS: 2_900,
  connectDurationInMS: 3_120,
} as const;

const metadata = { campaign: 'autumn' };
const durations = {
  amdRingDurationInMs: answer.ringDurationInMS,
  amdConnectDurationInMs: answer.connectDurationInMS,
};
const answeredContext: CallContext = {
  session: { UserSession: { amd: [], amdInfo: durations } },
  metadata,
};
const detectedContext: CallContext = {
  session: { UserSession: { amd: [person.event], amdInfo: { amdEvents: [person], ...durations } } },
  metadata,
};
const emptyContext: CallContext = {
  session: { UserSession: { amd: [], amdInfo: {} } },
  metadata,
};

const playback = {
  playbackId: 'play-8f2c',
  sound: 'sound:autumn-message',
  source: 'voicemail',
} as const;

const transferNames = {
  commandId: 'agents-1',
  to: 'sip:agents@pbx.example',
  mode: 'bridge',
} as const;

const exampleData: { readonly [Type in CallEventType]: DataOf<Type> } = {
  queued: { trunk: 'carrier' },
  dialing: { trunk: 'carrier', gateway: 'sip.carrier.example:5060', attempt: 1 },
  ringing: { sipStatus: 180, sipReason: 'Ringing', earlyMedia: false },
  answered: { ...answer, notificationSequence: 1, context: answeredContext },
  amd: { ...answer, notificationSequence: 2, amd: person, context: detectedContext },
  dtmf: { digit: '5', durationMs: 120, source: 'rtp' },
  'dtmf-sent': { commandId: 'menu-1', digits: '2w4#', complete: true },
  'stream-started': { connection: 1, openMs: 45 },
  'stream-stopped': {
    reason: 'call-ended',
    connections: 1,
    playedMs: 4_200,
    droppedMs: 0,
    underruns: 0,
    unheardMs: 0,
    ignoredMessages: 0,
  },
  'stream-failed': { reason: 'ECONNREFUSED', willRetry: true },
  'playback-started': { ...playback, afterBeep: true },
  'playback-finished': { ...playback, reason: 'done', playedMs: 6_200 },
  'transfer-ringing': { ...transferNames, sipStatus: 180, earlyMedia: false },
  'transfer-answered': transferNames,
  'transfer-completed': {
    ...transferNames,
    outcome: 'completed',
    answeredAt: '2026-11-20T09:00:14.020Z',
    durationMs: 65_300,
    msToTwoWayAudio: 45,
  },
  'transfer-failed': {
    ...transferNames,
    outcome: 'busy',
    reason: '486 Busy Here',
    sipStatus: 486,
  },
  completed: {
    outcome: 'completed',
    reason: '200 OK',
    reasonCode: 'Caller-disconnected',
    ...answer,
    callDisconnectTime: '2026-11-20T09:00:16.710Z',
    callDurationS: 12,
    callDurationMs: 12_400,
    sessionId: 'ss-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
    machineDetection: person.event,
    notificationSequence: 3,
    context: detectedContext,
  },
  failed: {
    outcome: 'busy',
    reason: '486 Busy Here',
    reasonCode: 'Busy here',
    sipStatus: 486,
    ringDurationInMS: 0,
    connectDurationInMS: 0,
    callDisconnectTime: '2026-11-20T09:00:02.120Z',
    notificationSequence: 1,
    context: emptyContext,
  },
};

export const exampleIdentity: CallIdentity = {
  callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10' as CallId,
  sid: 'sid-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
  conversationId: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
  botId: 'st-1b2c3d',
  accountId: 'acme',
  appId: 'app-dialer',
};

export type ExampleOptions = {
  readonly identity?: CallIdentity;
  readonly time?: string;
  readonly eventSequence?: number;
  /** Left out: as the example has it. */
  readonly notificationSequence?: number;
};

export function exampleEvent(type: CallEventType, options: ExampleOptions = {}): CallEvent {
  const { identity = exampleIdentity, time = '2026-11-20T09:00:02.120Z' } = options;
  const { eventSequence = 4, notificationSequence } = options;
  const data = exampleData[type];
  return {
    ...identity,
    id: callEventId(identity.callId, type, eventSequence),
    type,
    time,
    eventSequence,
    data: notificationSequence === undefined ? data : { ...data, notificationSequence },
    // The data is of the type; TypeScript cannot follow that through a union.
  } as CallEvent;
}
