// Opens the parts that send notifications and watch for failing receivers.

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
 * How long we wait for the dispatcher to stop. The shutdown has already waited for notifications
 * that were being sent. If any haven't been delivered after this time, the next process sends them
 * again.
 */
const dispatcherStopTimeoutMs = 500;
/** How often we check for failing receivers, which is also the maximum delay of an alert. */
const watchEveryMs = 5_000;

export type Notifier = {
  /**
   * Returns true if notifications may be sent to this URL's host. We can't check a host name until
   * it has been resolved.
   */
  isNotifiable(url: URL): boolean;
  /**
   * Releases the notification queues that lost processes had leased, so that any process can send
   * from them.
   */
  takeOver(): Promise<void>;
  /** Looks for pending notifications that weren't stored by this process's own calls. */
  pollForOwed(): void;
  /** Looks for due notifications without waiting for the next poll. */
  pollForDue(): void;
  /** Returns true if the dispatcher could send to this receiver without delay. */
  canTake(receiver: Receiver): boolean;
  /** Returns when a notification lease that starts now will expire. */
  leaseUntil(now: Date): Date;
  /** Hands over stored and leased notifications to the dispatcher. */
  onStored(stored: StoredNotifications): void;
  /** Resolves with true if this process is sending a notification or is about to. */
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
