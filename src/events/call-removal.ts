// Removes a call's messages from NATS: its events on the stream, and its context in the bucket.

import type { EventConnection } from './connection.ts';
import type { CallAddress } from './subjects.ts';
import { callSubjects, streamNames } from './subjects.ts';

export type RemovedMessages = { readonly streamedEvents: number; readonly contexts: number };

/**
 * Purges by subject, which is repeatable. A call's subject names its account, bot and id.
 *
 * @throws if NATS is unreachable
 */
export async function removeCallMessages(
  { prefix, manager }: Pick<EventConnection, 'prefix' | 'manager'>,
  call: CallAddress,
): Promise<RemovedMessages> {
  const { calls, contextBucket } = streamNames(prefix);
  const purge = async (stream: string, filter: string): Promise<number> =>
    (await manager.streams.purge(stream, { filter })).purged;
  return {
    streamedEvents: await purge(calls, callSubjects(prefix, call)),
    // Per NATS ADR-8, a bucket is a stream, and a key is a subject.
    contexts: await purge(
      `KV_${contextBucket}`,
      `$KV.${contextBucket}.${call.botId}.${call.callId}`,
    ),
  };
}
