// Opens the parts that send notifications and watch for failing receivers.

import { createAlertPublisher } from '../events/alerts.ts';
import type { Metrics } from '../http/metrics.ts';
import { createAddressGuard } from '../lib/address-guard.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import { defaultRetrySchedule } from '../notifier/delivery-rules.ts';
import { NotificationDispatcher, type StoredNotifications } from '../notifier/dispatcher.ts';
import { createEndpointStore } from '../notifier/endpoint-store.ts';
import { EndpointWatch } from '../notifier/endpoint-watch.ts';
import { createSender, type NotificationSender } from '../notifier/http-sender.ts';
import { createNotificationStore, type NotificationStore } from '../notifier/notification-store.ts';
import type { Receiver } from '../notifier/origin-gates.ts';
import { type Recipients, rememberRecipients } from '../notifier/recipients.ts';
import { RecordingNotices } from '../notifier/recording-notices.ts';
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
/** How late a POST about a recording may be, unless many receivers hang. */
const noticesEveryMs = 2_000;

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
  /** Sends the POSTs about recordings that are due, without waiting for the next look. */
  sendNotices(): void;
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

function openNotices(
  { logger, clock, closers }: Environment,
  { storage, metrics, mayDeliver }: Parts,
  { sender, maxRestMs }: { readonly sender: NotificationSender; readonly maxRestMs: number },
): Repetition {
  const notices = new RecordingNotices({
    ...{ pool: storage.database.pool, mayDeliver, logger },
    delivery: {
      ...{ sender, version, schedule: defaultRetrySchedule, random: Math.random },
      ...{ now: () => clock.now(), secrets: (appId) => storage.apps.webhookSecrets(appId) },
    },
    onAttempt: ({ verdict, record }) =>
      metrics.notificationAttempt(verdict.kind, record.durationMs / 1_000),
  });
  const sending = repeat(
    { name: 'POSTs about recordings', everyMs: noticesEveryMs, maxRestMs, logger },
    () => notices.send(),
  );
  closers.add('POSTs about recordings', async () => {
    await sending.stop();
    await notices.settled();
  });
  return sending;
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
  const notices = openNotices(environment, parts, { sender, maxRestMs: parts.storage.maxRestMs });
  closers.add('dispatcher', () => dispatcher.stop(dispatcherStopTimeoutMs));
  return {
    isNotifiable: (url) => guard.isHostAllowed(url),
    takeOver: () => dispatcher.takeOver(),
    pollForOwed: () => dispatcher.wake(),
    pollForDue: () => dispatcher.pollForDue(),
    canTake: (receiver) => dispatcher.canTake(receiver),
    leaseUntil: (now) => dispatcher.leaseUntil(now),
    onStored: (stored) => dispatcher.onStored(stored),
    sendNotices: () => notices.wake(),
    isSending: () => store.holdsLeases(),
    ...{ store, recipients },
  };
}
