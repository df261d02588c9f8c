// A call that never took place, for tests of a receiver. Its notifications have the bodies that the
// gateway would send.

import { randomUUID } from 'node:crypto';
import type { CallEventType } from '../../calls/contract/call-event.ts';
import { exampleEvent } from '../../calls/contract/event-examples.ts';
import { notificationOf } from '../../calls/contract/event-table.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import type { NotificationBody } from '../../calls/contract/notification.ts';

export class MadeUpCall {
  readonly #identity = {
    callId: `call-${randomUUID()}` as CallId,
    sid: `sid-${randomUUID()}`,
    conversationId: randomUUID(),
    // These ids keep a dialer from mistaking the call for one of its own calls.
    botId: 'offhook-webhooks-test',
    accountId: 'offhook-webhooks-test',
    appId: 'offhook-webhooks-test',
  };
  #sequence = 0;

  /** The next notification of the call. */
  next(type: CallEventType): NotificationBody {
    this.#sequence += 1;
    const event = exampleEvent(type, {
      identity: this.#identity,
      time: new Date().toISOString(),
      eventSequence: this.#sequence,
      notificationSequence: this.#sequence,
    });
    const body = notificationOf(event);
    if (body === undefined) throw new Error(`${type} has no notification`);
    return body;
  }
}
