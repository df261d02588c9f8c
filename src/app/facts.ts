// What follows from facts: timeline and context for those who look, notifications for those who asked for them.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { createAlertPublisher } from '../events/alerts.ts';
import { startFactConsumer } from '../events/fact-consumer.ts';
import type { Metrics } from '../http/metrics.ts';
import type { ContextStore } from '../interactions/context-store.ts';
import { createContextWriter } from '../interactions/context-writer.ts';
import { createTimelineWriter } from '../interactions/timeline-writer.ts';
import { createAddressGuard } from '../lib/address-guard.ts';
import { repeat } from '../lib/repeat.ts';
import { Rest } from '../lib/rest.ts';
import { defaultRetrySchedule } from '../notifier/delivery-plan.ts';
import { NotificationDispatcher } from '../notifier/dispatcher.ts';
import { createEndpointStore } from '../notifier/endpoint-store.ts';
import { EndpointWatch } from '../notifier/endpoint-watch.ts';
import { createSender } from '../notifier/http-sender.ts';
import { createNotificationIntake } from '../notifier/intake.ts';
import { createNotificationStore } from '../notifier/notification-store.ts';
import { version } from '../version.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import { networksOpenTo } from './networks.ts';
import type { Storage } from './storage.ts';

type Parts = {
  readonly storage: Storage;
  readonly events: Events;
  readonly contexts: ContextStore;
  readonly metrics: Metrics;
  readonly mayDeliver: () => boolean;
  /** As SIP found it. */
  readonly beyondLaptop: readonly string[];
};

/** Facts in one statement. */
const maxBatch = 200;
/** What is being sent at the end may finish; the rest is owed by the next process. */
const dispatcherStopTimeoutMs = 3_000;
const settlePollMs = 25;
/** How late an alert may be. */
const watchEveryMs = 5_000;

export type FactConsumers = {
  /** Whether notifications may go to the host of this URL, as far as the URL itself says. */
  isNotifiable(url: URL): boolean;
  /** Waits until what was stated is stored and what is owed was sent or put off, at most this long. */
  settle(timeoutMs: number): Promise<void>;
  /** What lost processes were about to deliver. */
  takeOver(): Promise<void>;
  /** Notifications are owed that no fact brought. */
  lookForOwed(): void;
};

export async function openFactConsumers(
  environment: Environment,
  parts: Parts,
): Promise<FactConsumers> {
  await openInteractions(environment, parts);
  const notifier = await openNotifier(environment, parts);
  const isSettled = async (): Promise<boolean> =>
    parts.events.publisher.waiting() === 0 &&
    (await notifier.consumer.isCaughtUp()) &&
    !(await notifier.store.holdsLeases());
  return {
    isNotifiable: (url) => notifier.guard.isHostAllowed(url),
    takeOver: () => notifier.dispatcher.takeOver(),
    lookForOwed: () => notifier.dispatcher.wake(),
    async settle(timeoutMs) {
      const deadline = performance.now() + timeoutMs;
      while (parts.events.connection.connected() && performance.now() < deadline) {
        if (await isSettled()) return;
        await pause(settlePollMs);
      }
    },
  };
}

async function openInteractions({ logger, closers }: Environment, parts: Parts): Promise<void> {
  const writeTimeline = createTimelineWriter(parts.storage.database.pool);
  const writeContext = createContextWriter(parts.contexts);
  const consumer = await startFactConsumer(parts.events.connection, {
    name: 'interactions',
    maxBatch,
    logger,
    handle: async (facts: readonly CallEvent[]) => {
      await Promise.all([writeTimeline(facts), writeContext(facts)]);
    },
  });
  closers.add('interactions', () => consumer.stop());
}

function openEndpointWatch({ logger, clock, closers }: Environment, parts: Parts): EndpointWatch {
  const watch = new EndpointWatch({
    store: createEndpointStore(parts.storage.database.pool),
    publish: createAlertPublisher(parts.events.connection),
    now: () => clock.now(),
    logger,
    onFailing: (byApp) => parts.metrics.endpointsFailing(byApp),
  });
  const rest = new Rest(parts.storage.longestRestMs);
  const rounds = repeat({ name: 'endpoints', everyMs: watchEveryMs, logger }, () => {
    if (watch.hasNews()) rest.wake();
    return rest.round(() => watch.round());
  });
  closers.add('endpoints', async () => {
    await rounds.stop();
    await watch.report();
  });
  return watch;
}

async function openNotifier(environment: Environment, parts: Parts) {
  const { config, logger, clock, closers } = environment;
  const { ledger, apps, database } = parts.storage;
  const guard = createAddressGuard(
    networksOpenTo(config.notifier.allowedNetworks, parts.beyondLaptop),
  );
  const sender = createSender({
    guard,
    connectionsPerOrigin: 32,
    now: () => clock.now().getTime(),
  });
  closers.add('notification sender', () => sender.close());
  const store = createNotificationStore(database.pool, config.ownerId, defaultRetrySchedule);
  const recipients = (callIds: readonly string[]) => ledger.callForNotifying(callIds);
  const watch = openEndpointWatch(environment, parts);
  const dispatcher = new NotificationDispatcher(
    {
      store,
      recipients,
      sender,
      mayDeliver: parts.mayDeliver,
      secrets: (appId) => apps.webhookSecrets(appId),
      schedule: defaultRetrySchedule,
      now: () => clock.now(),
      random: Math.random,
      version,
      logger,
      onAttempt: (delivery, endpoint) => {
        const { verdict, record } = delivery;
        environment.watcher?.onDelivery(delivery, endpoint?.origin);
        parts.metrics.notificationAttempt(verdict.kind, record.durationMs / 1_000);
        if (endpoint === undefined) return;
        const error = record.error ?? String(record.responseStatus);
        watch.onAttempt(endpoint, record.at, verdict.kind === 'delivered' ? undefined : error);
      },
    },
    { longestRestMs: parts.storage.longestRestMs },
  );
  await dispatcher.start();
  closers.add('dispatcher', () => dispatcher.stop(dispatcherStopTimeoutMs));
  const consumer = await startFactConsumer(parts.events.connection, {
    name: 'notifier',
    maxBatch,
    logger,
    handle: createNotificationIntake({ store, recipients, dispatcher, now: () => clock.now() }),
  });
  closers.add('notifier', () => consumer.stop());
  return { consumer, store, dispatcher, guard };
}
