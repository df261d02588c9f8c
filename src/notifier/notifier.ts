// The notifier put together: facts in, signed POSTs out.

import type { CallEvent } from '../calls/call-events.ts';
import type { Logger } from '../lib/logger.ts';
import type { Delivery } from './delivery.ts';
import { defaultRetrySchedule, type RetrySchedule } from './delivery-plan.ts';
import { NotificationDispatcher } from './dispatcher.ts';
import { createSender } from './http-sender.ts';
import { createNotificationIntake } from './intake.ts';
import { createNotificationStore, type SqlClient } from './notification-store.ts';
import { defaultGateLimits } from './origin-gates.ts';
import type { RecipientLookup, SecretLookup } from './recipients.ts';
import { createSsrfGuard } from './ssrf-guard.ts';

export type NotifierDeps = {
  readonly sql: SqlClient;
  readonly recipients: RecipientLookup;
  readonly secrets: SecretLookup;
  readonly logger: Logger;
  readonly onAttempt?: (delivery: Delivery) => void;
};

export type NotifierOptions = {
  readonly nodeId: string;
  /** This start of this node: `<nodeId>/<random>`. */
  readonly ownerId: string;
  /** NOTIFY_ALLOWED_NETWORKS. */
  readonly allowedNetworks: readonly string[];
  readonly version: string;
  readonly schedule?: RetrySchedule;
  readonly timeoutMs?: number;
  readonly pollMs?: number;
  readonly now?: () => Date;
  readonly random?: () => number;
};

export type Notifier = {
  /** The handler for `startFactConsumer`. */
  readonly handle: (facts: readonly CallEvent[]) => Promise<void>;
  start(): Promise<void>;
  /** Stop the fact consumer first. What is owed stays owed. */
  stop(timeoutMs: number): Promise<void>;
  /** Calls whose notifications are being sent. */
  lanes(): number;
};

export function createNotifier(deps: NotifierDeps, options: NotifierOptions): Notifier {
  const now = options.now ?? (() => new Date());
  const schedule = options.schedule ?? defaultRetrySchedule;
  const sender = createSender({
    guard: createSsrfGuard(options.allowedNetworks),
    connectionsPerOrigin: defaultGateLimits.maxActive,
    now: () => now().getTime(),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  });
  const store = createNotificationStore(deps.sql, options.ownerId, schedule);
  const dispatcher = new NotificationDispatcher(
    {
      store,
      sender,
      schedule,
      now,
      random: options.random ?? Math.random,
      recipients: deps.recipients,
      secrets: deps.secrets,
      nodeId: options.nodeId,
      version: options.version,
      logger: deps.logger,
      ...(deps.onAttempt === undefined ? {} : { onAttempt: deps.onAttempt }),
    },
    options.pollMs === undefined ? {} : { pollMs: options.pollMs },
  );
  return {
    handle: createNotificationIntake({ store, recipients: deps.recipients, dispatcher, now }),
    start: () => dispatcher.start(),
    stop: async (timeoutMs) => {
      await dispatcher.stop(timeoutMs);
      await sender.close();
    },
    lanes: () => dispatcher.lanes(),
  };
}
