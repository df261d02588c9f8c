// Reads call events from NATS messages.

import type { MsgHdrs } from '@nats-io/transport-node';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import {
  parsePublishedEvent,
  type publishedEvent,
} from '../../src/calls/contract/published-event.ts';

type Message = {
  readonly subject: string;
  readonly headers?: MsgHdrs | undefined;
  string(): string;
};

/** An event as a message says it, with what its subject and its header say. */
export type EventOnNats = ReturnType<typeof publishedEvent> &
  Pick<CallEvent, 'id' | 'callId' | 'botId' | 'accountId'>;

export function readEvent(message: Message): EventOnNats {
  const body = JSON.parse(message.string()) as ReturnType<typeof publishedEvent>;
  return { ...body, ...addressOf(message) };
}

/** Checks a message, too. What only the first and the last message say is replaced by dots. */
export function parseEvent(message: Message) {
  const { id, ...address } = addressOf(message);
  const identity = { ...address, sid: '…', conversationId: '…', appId: '…' };
  return parsePublishedEvent(message.string(), id, identity);
}

function addressOf({ subject, headers }: Message) {
  const [, , accountId = '', botId = '', callId = ''] = subject.split('.');
  return { accountId, botId, callId: callId as CallId, id: headers?.get('Nats-Msg-Id') ?? '' };
}
