// The `call-context` bucket: what bot flows read of a call while it is up. A copy for them; SQL and the facts are what it is
// made from.

import { Kvm } from '@nats-io/kv';
import { type CallContext, callContextSchema } from '../calls/contract/call-context.ts';
import { matching } from '../calls/contract/schema.ts';
import type { EventConnection } from '../events/connection.ts';
import { streamNames } from '../events/subjects.ts';

export type ContextStore = {
  put(key: string, context: CallContext): Promise<void>;
  /** Undefined: not there, or not a context. Throws when the store is away. */
  get(key: string): Promise<CallContext | undefined>;
};

export function contextKey(call: { readonly botId: string; readonly callId: string }): string {
  return `${call.botId}.${call.callId}`;
}

/** The bucket must exist: `ensureStreams` creates it. */
export async function openContextStore(connection: EventConnection): Promise<ContextStore> {
  const bucket = await new Kvm(connection.jetstream).open(
    streamNames(connection.prefix).contextBucket,
  );
  return {
    put: async (key, context) => {
      await bucket.put(key, JSON.stringify(context));
    },
    get: async (key) => {
      if (!connection.connected()) throw new Error('NATS is away');
      const entry = await bucket.get(key);
      return entry?.operation === 'PUT' ? parseContext(entry.string()) : undefined;
    },
  };
}

function parseContext(text: string): CallContext | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  // Bots hold connections to the same NATS, so that anybody may have written there.
  const read = matching(callContextSchema, value);
  return read.ok ? read.value : undefined;
}
