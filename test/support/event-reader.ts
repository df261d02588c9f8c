// Reads call events from their stream, as the companion reads its own stream.

import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { type BatchConsumer, startBatchConsumer } from '../../src/events/batch-consumer.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { parseEvent } from './published-events.ts';

export async function startEventReader(
  connection: EventConnection,
  handle: (events: readonly CallEvent[]) => Promise<void> | void,
  maxBatch = 100,
): Promise<BatchConsumer> {
  return await startBatchConsumer<CallEvent>(connection, {
    ...{ name: 'reader', maxBatch, logger: silentLogger },
    stream: streamNames(connection.prefix).calls,
    read: (message) => {
      const parsed = parseEvent(message);
      return parsed.ok ? { ok: true, item: parsed.event } : parsed;
    },
    handle: async (events) => {
      await handle(events);
      return new Map();
    },
  });
}
