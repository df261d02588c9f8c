// A notifier over a real database, fed with facts directly; calls go to the URLs that a test names.

import { randomBytes, randomUUID } from 'node:crypto';
import type { CallEvent } from '../../src/calls/call-events.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { RetrySchedule } from '../../src/notifier/delivery-plan.ts';
import { createNotifier, type Notifier } from '../../src/notifier/notifier.ts';
import type { Recipient } from '../../src/notifier/recipients.ts';
import { factTeller, someIdentity } from '../support/call-facts.ts';
import type { TestDatabase } from '../support/databases.ts';

/** Fast enough for a test, in the proportions of the real one. */
export const quickSchedule: RetrySchedule = {
  delaysMs: [20, 40, 80],
  thenEveryMs: 100,
  giveUpAfterMs: 3_600_000,
  jitter: 0,
  passRefusedAfterMs: 300,
};

export type NotifierRig = ReturnType<typeof createNotifierRig>;

export function createNotifierRig(database: TestDatabase, schedule = quickSchedule) {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const recipients = new Map<string, Recipient>();
  const running: Notifier[] = [];
  const start = async (
    options: { readonly nodeId?: string; readonly allowedNetworks?: readonly string[] } = {},
  ): Promise<Notifier> => {
    const nodeId = options.nodeId ?? 'node-1';
    const notifier = createNotifier(
      {
        sql: database.pool,
        recipients: (callIds) =>
          Promise.resolve(
            new Map(
              callIds.flatMap((callId) => {
                const recipient = recipients.get(callId);
                return recipient === undefined ? [] : [[callId, recipient] as const];
              }),
            ),
          ),
        secrets: () => Promise.resolve([secret]),
        logger: silentLogger,
      },
      {
        nodeId,
        ownerId: `${nodeId}/${randomUUID().slice(0, 8)}`,
        allowedNetworks: options.allowedNetworks ?? ['127.0.0.0/8'],
        version: '0.0.0-test',
        schedule,
        pollMs: 20,
        timeoutMs: 1_000,
      },
    );
    running.push(notifier);
    await notifier.start();
    return notifier;
  };
  return {
    secret,
    start,
    /** A call that is notified to this URL. */
    call: (notifyUrl: string, notifyHeaders: Readonly<Record<string, string>> = {}) => {
      const identity = someIdentity();
      recipients.set(identity.callId, { appId: identity.appId, notifyUrl, notifyHeaders });
      return factTeller(identity);
    },
    stop: async () => {
      for (const notifier of running.splice(0)) await notifier.stop(2_000);
    },
    states: async (): Promise<Readonly<Record<string, string>>> => {
      const result = await database.pool.query<{ event_id: string; state: string }>(
        'select event_id, state from notifications',
      );
      return Object.fromEntries(result.rows.map((row) => [row.event_id, row.state]));
    },
    attempts: async (eventId: string) => {
      const result = await database.pool.query<{
        attempt: number;
        response_status: number | null;
        error: string | null;
        delivered: boolean;
      }>(
        `select attempt, response_status, error, delivered from delivery_attempts where event_id = $1
         order by attempt`,
        [eventId],
      );
      return result.rows;
    },
    lanesLeft: async (): Promise<number> => {
      const result = await database.pool.query<{ count: number }>(
        'select count(*)::integer as count from notification_lanes',
      );
      return result.rows[0]?.count ?? 0;
    },
  };
}

/** Every fact of a person's call that is notified, and two that are not. */
export function personCall(call: ReturnType<typeof factTeller>): readonly CallEvent[] {
  return [
    call.dialing(),
    call.ringing(),
    call.answered(),
    call.amd('amd_human_detected'),
    call.amd('amd_stopped'),
    call.completed(),
  ];
}
