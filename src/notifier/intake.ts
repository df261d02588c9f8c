// Turns facts into notifications that are owed: one row each, with the body as it will be signed and sent. A fact that
// comes twice is one row; when the rows are stored the fact has done its work here.

import { type CallEvent, callEventId } from '../calls/contract/call-event.ts';
import { notificationOf } from '../calls/contract/event-table.ts';
import type { AcceptedLane, NewNotification, NotificationStore } from './notification-store.ts';
import { originOf } from './origin-gates.ts';
import { type Recipient, type RecipientLookup, rememberRecipients } from './recipients.ts';

/** What the intake tells the dispatcher, so that nobody has to wait for its next look into the database. */
export type IntakeTarget = {
  /** Whether it would send to this receiver at once; then the lane is made with its lease. */
  canTake(origin: string): boolean;
  leaseUntil(): Date;
  onAccepted(
    lanes: readonly AcceptedLane[],
    rows: readonly NewNotification[],
    recipients: ReadonlyMap<string, Recipient>,
    leasedUntil: Date,
  ): void;
};

export type IntakeDeps = {
  readonly store: Pick<NotificationStore, 'accept'>;
  readonly recipients: RecipientLookup;
  readonly dispatcher: IntakeTarget;
  readonly now: () => Date;
};

/** The handler for `startFactConsumer`. Throws when the database does not store; the facts come again then. */
export function createNotificationIntake(deps: IntakeDeps) {
  const recipientsOf = rememberRecipients(deps.recipients);
  return async (facts: readonly CallEvent[]): Promise<void> => {
    const bodies = facts.flatMap((fact) => {
      const body = notificationOf(fact);
      return body === undefined ? [] : [{ fact, body }];
    });
    if (bodies.length === 0) return;
    const callIds = [...new Set(bodies.map(({ fact }) => fact.callId))];
    const recipients = await recipientsOf(callIds);
    const createdAt = deps.now();
    const rows: NewNotification[] = [];
    for (const { fact, body } of bodies) {
      const recipient = recipients.get(fact.callId);
      if (recipient?.notifyUrl === undefined) continue;
      const origin = originOf(recipient.notifyUrl);
      rows.push({
        eventId: fact.id,
        endEventId: callEventId(fact.callId, 'completed', 0),
        callId: fact.callId,
        accountId: fact.accountId,
        botId: fact.botId,
        origin,
        appId: recipient.appId,
        sequence: body.sequence,
        body: JSON.stringify(body),
        createdAt,
        lease: deps.dispatcher.canTake(origin),
      });
    }
    if (rows.length === 0) return;
    const leasedUntil = deps.dispatcher.leaseUntil();
    const lanes = await deps.store.accept(rows, createdAt, leasedUntil);
    deps.dispatcher.onAccepted(lanes, rows, recipients, leasedUntil);
  };
}
