// Well-formed events of an invented call, for tests of code that reads events.

import { randomUUID } from 'node:crypto';
import { type CallEvent, callEventId } from '../../src/calls/contract/call-event.ts';
import { exampleEvent } from '../../src/calls/contract/event-examples.ts';
import type { CallId, CallIdentity } from '../../src/calls/contract/identity.ts';
import type { SelectedEventType } from '../../src/calls/contract/notify-events.ts';
import type { AmdEventName } from '../../src/calls/detection/amd-event.ts';

const times = {
  callConnectTime: '2026-11-20T08:00:02.000Z',
  ringDurationInMS: 1_500,
  connectDurationInMS: 2_000,
} as const;

export function someIdentity(overrides: Partial<CallIdentity> = {}): CallIdentity {
  return {
    callId: `call-${randomUUID()}` as CallId,
    sid: `sid-${randomUUID()}`,
    conversationId: randomUUID(),
    botId: 'st-bot',
    accountId: 'acme',
    appId: 'app-1',
    ...overrides,
  };
}

/**
 * Returns builders for one call's events. They number the events as a real call would.
 */
export function eventBuilder(identity: CallIdentity = someIdentity()) {
  let eventSequence = 0;
  let notificationSequence = 0;
  const envelope = (type: CallEvent['type']) => {
    eventSequence += 1;
    return {
      ...identity,
      id: callEventId(identity.callId, type, eventSequence),
      time: new Date(Date.UTC(2026, 10, 20, 8, 0, eventSequence)).toISOString(),
      eventSequence,
    };
  };
  const notified = () => {
    notificationSequence += 1;
    return { notificationSequence };
  };
  return {
    identity,
    queued: (): CallEvent => ({ ...envelope('queued'), type: 'queued', data: {} }),
    dialing: (): CallEvent => ({
      ...envelope('dialing'),
      type: 'dialing',
      data: { gateway: 'sandbox', attempt: 1 },
    }),
    ringing: (): CallEvent => ({
      ...envelope('ringing'),
      type: 'ringing',
      data: { sipStatus: 180, sipReason: 'Ringing', earlyMedia: false },
    }),
    /** An example event of a type that requests can select with `notifyEvents`. */
    selected: (type: SelectedEventType): CallEvent => {
      const { time, eventSequence: number } = envelope(type);
      return exampleEvent(type, { identity, time, eventSequence: number, ...notified() });
    },
    answered: (): CallEvent => ({
      ...envelope('answered'),
      type: 'answered',
      data: { ...times, ...notified() },
    }),
    amd: (event: AmdEventName): CallEvent => ({
      ...envelope('amd'),
      type: 'amd',
      data: {
        ...times,
        ...notified(),
        amd: { event, reason: 'short-greeting', elapsedMs: 900, words: 2, confidence: 0.9 },
      },
    }),
    completed: (): CallEvent => ({
      ...envelope('completed'),
      type: 'completed',
      data: {
        ...times,
        ...notified(),
        outcome: 'completed',
        reason: '200 OK',
        reasonCode: 'Caller-disconnected',
        sipStatus: 200,
        callDisconnectTime: '2026-11-20T08:00:14.400Z',
        callDurationS: 12,
        callDurationMs: 12_400,
        sessionId: 'session-1',
        machineDetection: 'amd_human_detected',
      },
    }),
    failed: (): CallEvent => ({
      ...envelope('failed'),
      type: 'failed',
      data: {
        ...notified(),
        outcome: 'busy',
        reason: '486 Busy Here',
        reasonCode: 'Busy here',
        sipStatus: 486,
        ringDurationInMS: 0,
        connectDurationInMS: 0,
        callDisconnectTime: '2026-11-20T08:00:03.000Z',
      },
    }),
  };
}
