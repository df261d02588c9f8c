// Feeds the facts of calls to a handler. Handlers must be idempotent by event id and must not rely on the order; sequences
// are in the facts for that.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { parseCallEvent } from '../calls/contract/call-event.ts';
import {
  type BatchConsumer,
  type BatchConsumerOptions,
  startBatchConsumer,
} from './batch-consumer.ts';
import type { EventConnection } from './connection.ts';
import { streamNames } from './subjects.ts';

export type FactConsumerOptions = Pick<
  BatchConsumerOptions<CallEvent>,
  'name' | 'maxBatch' | 'logger'
> & {
  /** All or nothing: a throw brings every fact of the batch again. */
  readonly handle: (facts: readonly CallEvent[]) => Promise<void>;
};

export type FactConsumer = BatchConsumer;

const noneRefused = new Map<CallEvent, string>();

export async function startFactConsumer(
  connection: EventConnection,
  { handle, ...options }: FactConsumerOptions,
): Promise<FactConsumer> {
  return await startBatchConsumer<CallEvent>(connection, {
    ...options,
    stream: streamNames(connection.prefix).calls,
    read: (message) => {
      const parsed = parseCallEvent(message.string());
      return parsed.ok ? { ok: true, item: parsed.event } : parsed;
    },
    orderKey: (fact) => fact.callId,
    handle: async (facts) => {
      await handle(facts);
      return noneRefused;
    },
  });
}
