// Builds the notification to store for an event, including the exact body to sign and send. We call
// a notification owed until it has been delivered or has become a dead letter.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { notificationOf } from '../calls/contract/event-table.ts';
import type { OwedNotification } from '../store/outbox/call-appends.ts';
import { originOf, type Receiver } from './origin-gates.ts';

/**
 * @param canTake tells whether this process has room for the receiver, and should lease the queue
 * @returns undefined if no notification should be sent for the event
 */
export function owedFor(
  { request: { notifyUrl } }: AcceptedCall,
  event: CallEvent,
  canTake: (receiver: Receiver) => boolean,
): OwedNotification | undefined {
  const body = notifyUrl === undefined ? undefined : notificationOf(event);
  if (body === undefined) return undefined;
  const receiver = { accountId: event.accountId, origin: originOf(notifyUrl) };
  return {
    eventId: event.id,
    callId: event.callId,
    appId: event.appId,
    botId: event.botId,
    ...receiver,
    sequence: body.sequence,
    eventSequence: event.eventSequence,
    body: JSON.stringify(body),
    lease: canTake(receiver),
  };
}
