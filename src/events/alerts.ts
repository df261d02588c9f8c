// Publishes alerts for people. Within its duplicate window, the stream drops alerts with an id that
// it has already stored. Consumers have to drop any later repetitions.

import type { CampaignAlert } from '../calls/rules/held-campaign.ts';
import type { EventConnection } from './connection.ts';
import { alertSubject, campaignAlertSubject, recordingAlertSubject } from './subjects.ts';

export type Alert = {
  readonly id: string;
  readonly accountId: string;
  readonly appId: string;
};

/** Returns a function that publishes an alert, and rejects if the alert isn't stored in time. */
export function createAlertPublisher(connection: EventConnection) {
  return async (alert: Alert): Promise<void> => {
    const subject = alertSubject(connection.prefix, alert.accountId, alert.appId);
    await connection.put(subject, JSON.stringify(alert), { id: alert.id });
  };
}

/** Returns a function that publishes an alert, and rejects if the alert isn't stored in time. */
export function createCampaignAlertPublisher(connection: EventConnection) {
  return async (alert: CampaignAlert): Promise<void> => {
    const subject = campaignAlertSubject(connection.prefix, alert.accountId);
    await connection.put(subject, JSON.stringify(alert), { id: alert.id });
  };
}

/** Returns a function that publishes an alert, and rejects if the alert isn't stored in time. */
export function createRecordingAlertPublisher(connection: EventConnection) {
  return async (alert: Pick<Alert, 'id' | 'accountId'>): Promise<void> => {
    const subject = recordingAlertSubject(connection.prefix, alert.accountId);
    await connection.put(subject, JSON.stringify(alert), { id: alert.id });
  };
}
