// For one version: events that a gateway without an outbox published become notifications that are owed. What an outbox stored
// before it published is passed over, because it is known.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { callEventId } from '../calls/contract/call-event.ts';
import { notificationOf } from '../calls/contract/event-table.ts';
import type { NewNotification, NotificationStore } from './notification-store.ts';
import { originOf } from './origin-gates.ts';
import type { RecipientLookup } from './recipients.ts';

export type OlderNotificationsDeps = {
  readonly store: Pick<NotificationStore, 'accept'>;
  readonly recipients: RecipientLookup;
  readonly onAccepted: () => void;
  readonly now: () => Date;
};

/** A handler for `startEventConsumer`. Throws when the database does not store; the events come again then. */
export function createOlderNotifications(deps: OlderNotificationsDeps) {
  return async (events: readonly CallEvent[]): Promise<void> => {
    const bodies = events.flatMap((event) => {
      const body = notificationOf(event);
      return body === undefined ? [] : [{ event, body }];
    });
    if (bodies.length === 0) return;
    const recipients = await deps.recipients([...new Set(bodies.map(({ event }) => event.callId))]);
    const createdAt = deps.now();
    const rows: NewNotification[] = [];
    for (const { event, body } of bodies) {
      const recipient = recipients.get(event.callId);
      if (recipient?.notifyUrl === undefined) continue;
      rows.push({
        eventId: event.id,
        endEventId: callEventId(event.callId, 'completed', 0),
        callId: event.callId,
        accountId: event.accountId,
        botId: event.botId,
        origin: originOf(recipient.notifyUrl),
        appId: recipient.appId,
        sequence: body.sequence,
        body: JSON.stringify(body),
        createdAt,
      });
    }
    if (rows.length === 0) return;
    await deps.store.accept(rows, createdAt);
    deps.onAccepted();
  };
}
