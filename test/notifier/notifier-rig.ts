// A notifier over a real database, fed with facts directly; calls go to the URLs that a test names.

import { randomBytes, randomUUID } from 'node:crypto';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { RetrySchedule } from '../../src/notifier/delivery-plan.ts';
import { NotificationDispatcher } from '../../src/notifier/dispatcher.ts';
import { createSender } from '../../src/notifier/http-sender.ts';
import { createNotificationIntake } from '../../src/notifier/intake.ts';
import { createNotificationStore } from '../../src/notifier/notification-store.ts';
import { defaultGateLimits, type GateLimits } from '../../src/notifier/origin-gates.ts';
import type { Recipient, RecipientLookup } from '../../src/notifier/recipients.ts';
import { factTeller, someIdentity } from '../support/call-facts.ts';
import type { TestDatabase } from '../support/databases.ts';

/** Fast enough for a test, in the proportions of the real one. */
export const quickSchedule: RetrySchedule = {
  delaysMs: [20, 40, 80],
  thenEveryMs: 100,
  giveUpAfterMs: 3_600_000,
  jitter: 0,
  passRefusedAfterMs: 300,
  gapPatienceMs: 500,
};

export type NotifierRig = ReturnType<typeof createNotifierRig>;

export type TestNode = {
  readonly handle: (facts: readonly CallEvent[]) => Promise<void>;
  /** Calls in memory. */
  lanes(): number;
  /** Something is owed that no fact brought. */
  wake(): void;
  stop(): Promise<void>;
};

export function createNotifierRig(database: Pick<TestDatabase, 'pool'>, schedule = quickSchedule) {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const known = new Map<string, Recipient>();
  const recipients: RecipientLookup = (callIds) => {
    const found = new Map<string, Recipient>();
    for (const callId of callIds) {
      const recipient = known.get(callId);
      if (recipient !== undefined) found.set(callId, recipient);
    }
    return Promise.resolve(found);
  };
  const running: TestNode[] = [];
  const now = () => new Date();
  const start = async (
    options: {
      readonly nodeId?: string;
      readonly allowedNetworks?: readonly string[];
      readonly timeoutMs?: number;
      readonly pollMs?: number;
      /** As where no other process has the database. */
      readonly longestRestMs?: number;
      /** Where they differ from the usual ones. */
      readonly gates?: Partial<GateLimits>;
      /** Whether the node's own lease is held. */
      readonly mayDeliver?: () => boolean;
    } = {},
  ): Promise<TestNode> => {
    const nodeId = options.nodeId ?? 'node-1';
    const ownerId = `${nodeId}/${randomUUID().slice(0, 8)}`;
    const store = createNotificationStore(database.pool, ownerId, schedule);
    const sender = createSender({
      guard: createAddressGuard(options.allowedNetworks ?? ['127.0.0.0/8']),
      connectionsPerOrigin: 32,
      // Long by default: a busy machine must not make an attempt fail.
      timeoutMs: options.timeoutMs ?? 10_000,
      now: Date.now,
    });
    const dispatcher = new NotificationDispatcher(
      {
        store,
        recipients,
        sender,
        mayDeliver: options.mayDeliver ?? (() => true),
        secrets: () => Promise.resolve([secret]),
        schedule,
        now,
        random: Math.random,
        version: '0.0.0-test',
        logger: silentLogger,
      },
      {
        pollMs: options.pollMs ?? 20,
        longestRestMs: options.longestRestMs ?? 0,
        gates: { ...defaultGateLimits, ...options.gates },
      },
    );
    await dispatcher.start();
    const node: TestNode = {
      handle: createNotificationIntake({ store, recipients, dispatcher, now }),
      lanes: () => dispatcher.lanes(),
      wake: () => dispatcher.wake(),
      stop: async () => {
        await dispatcher.stop(2_000);
        await sender.close();
      },
    };
    running.push(node);
    return node;
  };
  return {
    secret,
    start,
    /** A call that is notified to this URL; undefined: its dialer gave none. */
    call: (notifyUrl: string | undefined, notifyHeaders: Readonly<Record<string, string>> = {}) => {
      const identity = someIdentity();
      const { appId, accountId } = identity;
      known.set(identity.callId, {
        ...{ appId, accountId, notifyHeaders },
        ...(notifyUrl === undefined ? {} : { notifyUrl }),
      });
      return factTeller(identity);
    },
    /** The end of a call as another node states it, which knew only of the notifications before this one. */
    endAs: (call: ReturnType<typeof factTeller>, notificationSequence: number): CallEvent => {
      const end = call.completed();
      if (end.type !== 'completed') throw new Error('not an end');
      return { ...end, data: { ...end.data, notificationSequence } };
    },
    wake: () => {
      for (const node of running) node.wake();
    },
    stop: async () => {
      for (const node of running.splice(0)) await node.stop();
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
