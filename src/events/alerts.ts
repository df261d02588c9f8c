// Publishes alerts for people. Within the duplicate window, the stream stores one alert for each
// id. Consumers drop later repetitions by id.

import type { EventConnection } from './connection.ts';
import { alertSubject } from './subjects.ts';

export type Alert = {
  readonly id: string;
  readonly accountId: string;
  readonly appId: string;
};

/** The returned function rejects if the alert is not stored in time. */
export function createAlertPublisher(connection: EventConnection) {
  return async (alert: Alert): Promise<void> => {
    const subject = alertSubject(connection.prefix, alert.accountId, alert.appId);
    await connection.put(subject, JSON.stringify(alert), { id: alert.id });
  };
}
