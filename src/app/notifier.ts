// Opens the parts that send notifications and watch the receivers for failures.

import { createAlertPublisher } from '../events/alerts.ts';
import type { Metrics } from '../http/metrics.ts';
import { createAddressGuard } from '../lib/address-guard.ts';
import { repeat } from '../lib/repeat.ts';
import { defaultRetrySchedule } from '../notifier/delivery-rules.ts';
import { NotificationDispatcher, type StoredNotifications } from '../notifier/dispatcher.ts';
import { createEndpointStore } from '../notifier/endpoint-store.ts';
import { EndpointWatch } from '../notifier/endpoint-watch.ts';
import { createSender } from '../notifier/http-sender.ts';
import { createNotificationStore, type NotificationStore } from '../notifier/notification-store.ts';
import type { Receiver } from '../notifier/origin-gates.ts';
import { type Recipients, rememberRecipients } from '../notifier/recipients.ts';
import { version } from '../version.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import { networksOpenTo } from './networks.ts';
import type { Storage } from './storage.ts';

type Parts = {
  readonly storage: Storage;
  readonly events: Events;
  readonly metrics: Metrics;
  readonly mayDeliver: () => boolean;
  /** See `SipParts.beyondLaptop`. */
  readonly beyondLaptop: readonly string[];
};

/**
 * Bounds the stop of the dispatcher. The shutdown has already waited for the notifications under
 * way. The next process sends the ones that do not finish in this time.
 */
const dispatcherStopTimeoutMs = 500;
/** Interval of the check for failing receivers, and so the largest delay of an alert. */
const watchEveryMs = 5_000;

export type Notifier = {
  /**
   * Returns true if notifications may go to the host of this URL. A host name is checked only when
   * it is resolved.
   */
  isNotifiable(url: URL): boolean;
  /**
   * Releases the notifications that lost processes had leased, so that any process may send them.
   */
  takeOver(): Promise<void>;
  /** Looks for owed notifications that other code than this process's calls has stored. */
  pollForOwed(): void;
  /** Looks for notifications that are due now, without waiting for the next poll. */
  pollForDue(): void;
  /** Returns true if the dispatcher would send a notification to this receiver without delay. */
  canTake(receiver: Receiver): boolean;
  /** Returns the end of a notification lease that begins now. */
  leaseUntil(now: Date): Date;
  /** Passes stored notifications, with their lease, to the dispatcher. */
  onStored(stored: StoredNotifications): void;
  /** Resolves with true if this process is sending a notification, or is about to. */
  isSending(): Promise<boolean>;
  readonly store: NotificationStore;
  readonly recipients: Recipients;
};

function openEndpointWatch(
  { logger, clock, closers }: Environment,
  parts: Parts,
): EndpointWatch['onAttempt'] {
  const watch = new EndpointWatch({
    store: createEndpointStore(parts.storage.database.pool),
    publish: createAlertPublisher(parts.events.connection),
    now: () => clock.now(),
    logger,
    onFailing: (byApp) => parts.metrics.endpointsFailing(byApp),
  });
  const { maxRestMs } = parts.storage;
  const watching = repeat({ name: 'endpoints', everyMs: watchEveryMs, maxRestMs, logger }, () =>
    watch.check(),
  );
  closers.add('endpoints', async () => {
    await watching.stop();
    await watch.report();
  });
  return (...attempt) => {
    watch.onAttempt(...attempt);
    if (watch.hasNews()) watching.wake();
  };
}

export async function openNotifier(environment: Environment, parts: Parts): Promise<Notifier> {
  const { config, logger, clock, closers, tracing } = environment;
  const { ledger, apps, database } = parts.storage;
  const guard = createAddressGuard(
    networksOpenTo(config.notifier.allowedNetworks, parts.beyondLaptop),
  );
  const sender = createSender({
    guard,
    now: () => clock.now().getTime(),
  });
  closers.add('notification sender', () => sender.close());
  const store = createNotificationStore(database.pool, config.ownerId, defaultRetrySchedule);
  const recipients = rememberRecipients((callIds) => ledger.callForNotifying(callIds));
  const watchEndpoint = openEndpointWatch(environment, parts);
  const dispatcher = new NotificationDispatcher(
    {
      store,
      recipients: recipients.lookup,
      sender,
      mayDeliver: parts.mayDeliver,
      secrets: (appId) => apps.webhookSecrets(appId),
      schedule: defaultRetrySchedule,
      now: () => clock.now(),
      random: Math.random,
      version,
      logger,
      ...(tracing === undefined
        ? {}
        : { trace: (parent, attempt) => tracing.startDelivery(parent, attempt) }),
      onAttempt: (delivery, endpoint) => {
        const { verdict, record } = delivery;
        environment.watcher?.onDelivery(delivery, endpoint?.origin);
        parts.metrics.notificationAttempt(verdict.kind, record.durationMs / 1_000);
        if (endpoint === undefined) return;
        const error = record.error ?? String(record.responseStatus);
        watchEndpoint(endpoint, record.at, verdict.kind === 'delivered' ? undefined : error);
      },
    },
    { maxRestMs: parts.storage.maxRestMs },
  );
  await dispatcher.start();
  closers.add('dispatcher', () => dispatcher.stop(dispatcherStopTimeoutMs));
  return {
    isNotifiable: (url) => guard.isHostAllowed(url),
    takeOver: () => dispatcher.takeOver(),
    pollForOwed: () => dispatcher.wake(),
    pollForDue: () => dispatcher.pollForDue(),
    canTake: (receiver) => dispatcher.canTake(receiver),
    leaseUntil: (now) => dispatcher.leaseUntil(now),
    onStored: (stored) => dispatcher.onStored(stored),
    isSending: () => store.holdsLeases(),
    ...{ store, recipients },
  };
}
