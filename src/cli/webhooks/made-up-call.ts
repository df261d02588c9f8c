// A call that never took place, for testing receivers. The notifications have the same bodies as
// those that the gateway would send.

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
    // These ids keep a dialer from mistaking this call for one of its own.
    botId: 'offhook-webhooks-test',
    accountId: 'offhook-webhooks-test',
    appId: 'offhook-webhooks-test',
  };
  #sequence = 0;

  /** Returns the call's next notification. */
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
