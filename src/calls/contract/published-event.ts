// The form of a call's events on NATS. A stream holds millions of them, so a message doesn't repeat
// what its subject (account, bot and call) or its `Nats-Msg-Id` header (the event's id) says, and
// only a call's first and last message name the request and the app. Every message names the
// conversation, because bot flows find their conversation by it.

import { z } from 'zod';
import {
  type CallEvent,
  type CallEventType,
  callEventSchema,
  isEnd,
  parseCallEvent,
} from './call-event.ts';
import { callEventEnvelope } from './definitions.ts';
import type { CallIdentity } from './identity.ts';

const { sid, conversationId, appId, time, eventSequence } = callEventEnvelope.shape;

const namesCall = (type: CallEventType): boolean => type === 'queued' || isEnd({ type });

/** The schema of an event's message on NATS. */
export function publishedEventSchema(type: CallEventType) {
  const { data } = callEventSchema(type).shape;
  const members = z.object({ type: z.literal(type), time, eventSequence, conversationId, data });
  return namesCall(type) ? members.extend({ sid, appId }) : members;
}

/** Returns the body of an event's message on NATS. */
export function publishedEvent(event: CallEvent) {
  return {
    ...{ type: event.type, time: event.time, eventSequence: event.eventSequence },
    conversationId: event.conversationId,
    ...(namesCall(event.type) ? { sid: event.sid, appId: event.appId } : {}),
    data: event.data,
  };
}

/**
 * Restores an event of a known call from its message.
 *
 * @param id the value of the message's `Nats-Msg-Id` header
 */
export function parsePublishedEvent(text: string, id: string, identity: CallIdentity) {
  const { callId, sid, conversationId, botId, accountId, appId } = identity;
  return parseCallEvent(text, { id, callId, sid, conversationId, botId, accountId, appId });
}
