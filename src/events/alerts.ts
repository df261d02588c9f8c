// Publishes what people should look at. Stored once for each id within the duplicate window; later repetitions are dropped by
// id by those who listen.

import type { EventConnection } from './connection.ts';
import { alertSubject } from './subjects.ts';

export type Alert = {
  readonly id: string;
  readonly accountId: string;
  readonly appId: string;
};

/** Rejects when it is not stored in time. */
export function createAlertPublisher(connection: EventConnection) {
  return async (alert: Alert): Promise<void> => {
    const subject = alertSubject(connection.prefix, alert.accountId, alert.appId);
    await connection.put(subject, JSON.stringify(alert), { id: alert.id });
  };
}
