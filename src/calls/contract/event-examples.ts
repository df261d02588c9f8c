// Example events of a fictional call, shown in the API documents and sent by `offhook webhooks
// test`.

import { type CallEvent, type CallEventType, callEventId, callEvents } from './call-event.ts';
import type { CallId, CallIdentity } from './identity.ts';

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
  /** Default: the number in the event's example. */
  readonly notificationSequence?: number;
};

export function exampleEvent(type: CallEventType, options: ExampleOptions = {}): CallEvent {
  const { identity = exampleIdentity, time = '2026-11-20T09:00:02.120Z' } = options;
  const { eventSequence = 4, notificationSequence } = options;
  const data = callEvents[type].example;
  return {
    ...identity,
    id: callEventId(identity.callId, type, eventSequence),
    type,
    time,
    eventSequence,
    data: notificationSequence === undefined ? data : { ...data, notificationSequence },
    // `data` belongs to `type`, but TypeScript can't follow that through a union.
  } as CallEvent;
}
