import type { EventConnection } from '../../src/events/connection.ts';
import {
  ensureStream,
  replicasFor,
  type StreamSettings,
  wantedStreams,
} from '../../src/events/streams.ts';

/** Creates or updates all streams and buckets, for tests that run without a gateway. */
export async function ensureStreams(
  connection: EventConnection,
  settings: StreamSettings,
): Promise<void> {
  const replicas = replicasFor(connection, settings);
  for (const wanted of wantedStreams(connection.prefix, settings)) {
    await ensureStream(connection, wanted, replicas);
  }
}
