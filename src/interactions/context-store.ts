// The `call-context` bucket, which bot flows read while a call is up. The gateway never reads it
// back: contexts are built from the events in the database.

import { JetStreamApiError } from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import type { z } from 'zod';
import { callContextSchema } from '../calls/contract/call-context.ts';
import { type Immutable, matching, sequence } from '../calls/contract/schema.ts';
import type { EventConnection } from '../events/connection.ts';
import { streamNames } from '../events/subjects.ts';

const storedContextSchema = callContextSchema.extend({
  eventSequence: sequence.describe('sequence number of the event that the context comes from'),
});
export type StoredContext = Immutable<z.infer<typeof storedContextSchema>>;

export type ContextStore = {
  /**
   * Writes the context if the entry's revision is still `revision`, where 0 means that there is no
   * entry. Returns the new revision, or undefined if another writer was faster.
   */
  replace(key: string, context: StoredContext, revision: number): Promise<number | undefined>;
  /**
   * Returns the current revision and the sequence of the event that the entry comes from. Both
   * numbers are 0 if there is no entry.
   */
  revisionOf(key: string): Promise<{ readonly eventSequence: number; readonly revision: number }>;
};

/** nats-server's error code for `wrong last sequence`. */
const wrongLastSequence = 10_071;

export function contextKey(call: { readonly botId: string; readonly callId: string }): string {
  return `${call.botId}.${call.callId}`;
}

/** Opens the bucket, which the gateway creates with the streams. NATS may be away. */
export function openContextStore(connection: EventConnection): ContextStore {
  const name = streamNames(connection.prefix).contextBucket;
  let opened: Promise<KV> | undefined;
  // This makes no request, but it needs a connection.
  const bucket = (): Promise<KV> => {
    const { jetstream } = connection;
    opened ??= new Kvm(jetstream).open(name);
    return opened;
  };
  // Per NATS ADR-8, this is the subject for a key, and the revision is the last message's sequence.
  const subjectOf = (key: string) => `$KV.${name}.${key}`;
  return {
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
      const entry = await (await bucket()).get(key);
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
  // Other programs on the same NATS can also write to the bucket.
  const read = matching(storedContextSchema, value);
  return read.ok ? read.value : undefined;
}
