// What sends notifications, and watches over those who receive them.

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
  /** As SIP found it. */
  readonly beyondLaptop: readonly string[];
};

/**
 * The shutdown has waited for notifications under way before. The next process sends what does not
 * finish within this.
 */
const dispatcherStopTimeoutMs = 500;
/** How late an alert may be. */
const watchEveryMs = 5_000;

export type Notifier = {
  /** Whether notifications may go to the host of this URL, as far as the URL itself says. */
  isNotifiable(url: URL): boolean;
  /** What lost processes were about to deliver. */
  takeOver(): Promise<void>;
  /** Notifications are owed that were not stored by this process's calls. */
  lookForOwed(): void;
  /** The same, and they are due. */
  lookForDue(): void;
  /** Whether it would send to this receiver at once. */
  canTake(receiver: Receiver): boolean;
  leaseUntil(now: Date): Date;
  onStored(stored: StoredNotifications): void;
  /** Something is being sent, or about to be. */
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
  const { longestRestMs } = parts.storage;
  const watching = repeat({ name: 'endpoints', everyMs: watchEveryMs, longestRestMs, logger }, () =>
    watch.look(),
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
    { longestRestMs: parts.storage.longestRestMs },
  );
  await dispatcher.start();
  closers.add('dispatcher', () => dispatcher.stop(dispatcherStopTimeoutMs));
  return {
    isNotifiable: (url) => guard.isHostAllowed(url),
    takeOver: () => dispatcher.takeOver(),
    lookForOwed: () => dispatcher.wake(),
    lookForDue: () => dispatcher.lookForDue(),
    canTake: (receiver) => dispatcher.canTake(receiver),
    leaseUntil: (now) => dispatcher.leaseUntil(now),
    onStored: (stored) => dispatcher.onStored(stored),
    isSending: () => store.holdsLeases(),
    ...{ store, recipients },
  };
}
