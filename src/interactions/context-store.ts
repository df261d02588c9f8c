// The `call-context` bucket: what bot flows read of a call while it is up. A copy for them; SQL and the events are what it is
// made from.

import { JetStreamApiError } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import type { z } from 'zod';
import { type CallContext, callContextSchema } from '../calls/contract/call-context.ts';
import { type Immutable, matching, sequence } from '../calls/contract/schema.ts';
import type { EventConnection } from '../events/connection.ts';
import { streamNames } from '../events/subjects.ts';

const storedContextSchema = callContextSchema.extend({
  eventSequence: sequence.describe('of the event that it comes from'),
});
export type StoredContext = Immutable<z.infer<typeof storedContextSchema>>;

export type ContextStore = {
  /** Undefined: not there, or not a context. Throws when the store is unreachable. */
  get(key: string): Promise<CallContext | undefined>;
  /** Writes it in place of this revision; 0: where there is none. Its own revision; undefined: another one is there. */
  replace(key: string, context: StoredContext, revision: number): Promise<number | undefined>;
  /** What is there now: all zero where there is nothing. */
  revisionOf(key: string): Promise<{ readonly eventSequence: number; readonly revision: number }>;
};

/** `wrong last sequence` of nats-server. */
const wrongLastSequence = 10_071;

export function contextKey(call: { readonly botId: string; readonly callId: string }): string {
  return `${call.botId}.${call.callId}`;
}

/** The bucket must exist: `ensureStreams` creates it. */
export async function openContextStore(connection: EventConnection): Promise<ContextStore> {
  const name = streamNames(connection.prefix).contextBucket;
  const bucket = await new Kvm(connection.jetstream).open(name);
  /** By the layout that all clients of NATS share (ADR-8): a key is a subject, its revision the sequence of its last message. */
  const subjectOf = (key: string) => `$KV.${name}.${key}`;
  return {
    get: async (key) => {
      if (!connection.connected()) throw new Error('NATS is unreachable');
      const entry = await bucket.get(key);
      return entry?.operation === 'PUT' ? parseContext(entry.string()) : undefined;
    },
    replace: async (key, context, revision) => {
      try {
        return await connection.put(subjectOf(key), JSON.stringify(context), {
          expectedLastSequence: revision,
        });
      } catch (error) {
        if (error instanceof JetStreamApiError && error.code === wrongLastSequence)
          return undefined;
        throw error;
      }
    },
    revisionOf: async (key) => {
      const entry = await bucket.get(key);
      if (entry === null) return { eventSequence: 0, revision: 0 };
      const context = entry.operation === 'PUT' ? parseContext(entry.string()) : undefined;
      return { eventSequence: context?.eventSequence ?? 0, revision: entry.revision };
    },
  };
}

function parseContext(text: string): StoredContext | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  // Bots hold connections to the same NATS, so that another program may have written there.
  const read = matching(storedContextSchema, value);
  return read.ok ? read.value : undefined;
}
