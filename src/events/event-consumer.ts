// Feeds the events of calls to a handler. Handlers must be idempotent by event id and must not rely on the order; sequences
// are in the events for that.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { parseCallEvent } from '../calls/contract/call-event.ts';
import {
  type BatchConsumer,
  type BatchConsumerOptions,
  startBatchConsumer,
} from './batch-consumer.ts';
import type { EventConnection } from './connection.ts';
import { streamNames } from './subjects.ts';

export type EventConsumerOptions = Pick<
  BatchConsumerOptions<CallEvent>,
  'name' | 'maxBatch' | 'logger'
> & {
  /** All or nothing: a throw brings every event of the batch again. */
  readonly handle: (events: readonly CallEvent[]) => Promise<void>;
};

export type EventConsumer = BatchConsumer;

const noneRefused = new Map<CallEvent, string>();

export async function startEventConsumer(
  connection: EventConnection,
  { handle, ...options }: EventConsumerOptions,
): Promise<EventConsumer> {
  return await startBatchConsumer<CallEvent>(connection, {
    ...options,
    stream: streamNames(connection.prefix).calls,
    read: (message) => {
      const parsed = parseCallEvent(message.string());
      return parsed.ok ? { ok: true, item: parsed.event } : parsed;
    },
    orderKey: (event) => event.callId,
    handle: async (events) => {
      await handle(events);
      return noneRefused;
    },
  });
}
