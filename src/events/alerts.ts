// Publishes alerts for people. The stream drops repetitions of an id within its duplicate window.
// Consumers drop later repetitions.

import type { EventConnection } from './connection.ts';
import { alertSubject } from './subjects.ts';

export type Alert = {
  readonly id: string;
  readonly accountId: string;
  readonly appId: string;
};

/** Returns a function that publishes an alert. It rejects if the alert is not stored in time. */
export function createAlertPublisher(connection: EventConnection) {
  return async (alert: Alert): Promise<void> => {
    const subject = alertSubject(connection.prefix, alert.accountId, alert.appId);
    await connection.put(subject, JSON.stringify(alert), { id: alert.id });
  };
}
