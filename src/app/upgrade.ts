// For one version: beside gateways that publish events before they are stored, and after them. What they published is stored and
// notified by whichever gateway reads it; when none of them is up and all is read, what they left on NATS is removed.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { startEventConsumer } from '../events/event-consumer.ts';
import { hasOlderConsumers, removeOlderVersion } from '../events/older-version.ts';
import type { ContextStore } from '../interactions/context-store.ts';
import { createContextWriter } from '../interactions/context-writer.ts';
import { repeat } from '../lib/repeat.ts';
import { createOlderNotifications } from '../notifier/older-notifications.ts';
import { createOlderEventWriter } from '../store/outbox/older-events.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Node } from './nodes.ts';
import type { Notifier } from './notifier.ts';
import type { Storage } from './storage.ts';

type Parts = {
  readonly storage: Storage;
  readonly node: Node;
  readonly events: Events;
  readonly contexts: ContextStore;
  readonly notifier: Notifier;
};

/** Events in one statement. */
const maxBatch = 200;
const lookEveryMs = 5_000;

export type OlderVersions = {
  /** Calls may have events that are on the stream alone. */
  areDrained(): boolean;
};

export async function drainOlderVersions(
  { logger, clock, closers }: Environment,
  { storage, node, events: { connection }, contexts, notifier }: Parts,
): Promise<OlderVersions> {
  if (!(await hasOlderConsumers(connection))) return { areDrained: () => true };
  const store = createOlderEventWriter(storage.database.pool);
  const writeContext = createContextWriter(contexts);
  const timeline = await startEventConsumer(connection, {
    ...{ name: 'interactions', maxBatch, logger },
    handle: async (events: readonly CallEvent[]) => {
      await store(events);
      for (const event of events) await writeContext(event);
    },
  });
  const notifications = await startEventConsumer(connection, {
    ...{ name: 'notifier', maxBatch, logger },
    handle: createOlderNotifications({
      store: notifier.store,
      recipients: notifier.recipients.lookup,
      onAccepted: () => notifier.lookForDue(),
      now: () => clock.now(),
    }),
  });
  let areDrained = false;
  const stop = async (): Promise<void> => {
    await Promise.all([timeline.stop(), notifications.stop()]);
  };
  const looking = repeat({ name: 'older gateways', everyMs: lookEveryMs, logger }, async () => {
    if (areDrained || (await node.store.isOlderUp())) return;
    if (!(await timeline.isCaughtUp()) || !(await notifications.isCaughtUp())) return;
    await stop();
    await removeOlderVersion(connection);
    areDrained = true;
    logger.info('what an older version left on NATS is stored and removed');
  });
  closers.add('older gateways', async () => {
    await looking.stop();
    if (!areDrained) await stop();
  });
  return { areDrained: () => areDrained };
}
