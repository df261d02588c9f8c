// Creates missing streams and buckets at startup, and updates existing ones to the configuration.
// We use only features of nats-server 2.9.10, because that's the version in Debian.

import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { nanos } from '@nats-io/transport-node';
import type { EventConnection } from './connection.ts';
import { ingestKinds, ingestSubject, streamNames } from './subjects.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/**
 * Longer than the pause between a publisher's retries. If a process has been down for longer, the
 * stream can't detect duplicates, so consumers have to drop them by id.
 */
const duplicateWindowMs = 2 * 60_000;
/**
 * Size limit for dead letters and alerts, i.e. the streams that people read. These streams must not
 * fill the disk.
 */
const forPeopleMaxBytes = 64 * 1024 * 1024;

export type Retention = { readonly eventDays: number; readonly contextHours: number };

type WantedStream = Pick<
  StreamConfig,
  'name' | 'subjects' | 'retention' | 'max_age' | 'duplicate_window' | 'max_bytes' | 'allow_direct'
>;

/** @throws Error if a stream with the same name exists for a different purpose */
export async function ensureStreams(
  connection: EventConnection,
  retention: Retention,
): Promise<void> {
  for (const wanted of wantedStreams(connection.prefix, retention)) {
    await ensureStream(connection, wanted);
  }
  await ensureContextBucket(connection, retention.contextHours * hourMs);
}

function wantedStreams(prefix: string, retention: Retention): readonly WantedStream[] {
  const names = streamNames(prefix);
  const maxAgeMs = retention.eventDays * dayMs;
  return [
    {
      name: names.calls,
      subjects: [`${prefix}.call.>`],
      retention: RetentionPolicy.Limits,
      max_age: nanos(maxAgeMs),
      // The server rejects a window that exceeds the maximum age.
      duplicate_window: nanos(Math.min(duplicateWindowMs, maxAgeMs)),
      max_bytes: -1,
      // To read a call's events, we need a subject's next message, which only the direct API can
      // return.
      allow_direct: true,
    },
    {
      name: names.ingest,
      // We list the kinds instead of using a wildcard, so that the server rejects unknown kinds.
      subjects: ingestKinds.map((kind) => ingestSubject(prefix, kind, '*')),
      retention: RetentionPolicy.Limits,
      max_age: nanos(maxAgeMs),
      duplicate_window: nanos(Math.min(duplicateWindowMs, maxAgeMs)),
      max_bytes: -1,
      allow_direct: false,
    },
    {
      name: names.dead,
      subjects: [`${prefix}.dead.>`],
      retention: RetentionPolicy.Limits,
      max_age: nanos(maxAgeMs),
      duplicate_window: nanos(Math.min(duplicateWindowMs, maxAgeMs)),
      max_bytes: forPeopleMaxBytes,
      allow_direct: true,
    },
    {
      name: names.alerts,
      subjects: [`${prefix}.alert.>`],
      retention: RetentionPolicy.Limits,
      max_age: nanos(maxAgeMs),
      duplicate_window: nanos(Math.min(duplicateWindowMs, maxAgeMs)),
      max_bytes: forPeopleMaxBytes,
      allow_direct: true,
    },
  ];
}

async function ensureStream(connection: EventConnection, wanted: WantedStream): Promise<void> {
  const { streams } = connection.manager;
  const existing = await unlessMissing(streams.info(wanted.name));
  if (existing === undefined) {
    await streams.add({ ...wanted, storage: StorageType.File, discard: DiscardPolicy.Old });
    return;
  }
  if (existing.config.retention !== wanted.retention) {
    throw new Error(
      `the stream ${wanted.name} exists with retention ${existing.config.retention}; remove it or set a different NATS_PREFIX`,
    );
  }
  if (isUpToDate(existing.config, wanted)) return;
  const { name, retention: _fixed, ...changeable } = wanted;
  await streams.update(name, changeable);
}

function isUpToDate(existing: StreamConfig, wanted: WantedStream): boolean {
  return (
    existing.max_age === wanted.max_age &&
    existing.duplicate_window === wanted.duplicate_window &&
    existing.max_bytes === wanted.max_bytes &&
    (existing.allow_direct ?? false) === wanted.allow_direct &&
    JSON.stringify(existing.subjects) === JSON.stringify(wanted.subjects)
  );
}

async function ensureContextBucket(connection: EventConnection, ttlMs: number): Promise<void> {
  const bucket = streamNames(connection.prefix).contextBucket;
  const stream = `KV_${bucket}`;
  const existing = await unlessMissing(connection.manager.streams.info(stream));
  if (existing === undefined) {
    const kvm = new Kvm(connection.jetstream);
    await kvm.create(bucket, { history: 1, ttl: ttlMs, storage: StorageType.File });
    return;
  }
  if (existing.config.max_age === nanos(ttlMs)) return;
  await connection.manager.streams.update(stream, {
    max_age: nanos(ttlMs),
    duplicate_window: nanos(Math.min(duplicateWindowMs, ttlMs)),
  });
}

/** @returns undefined if the requested stream or bucket doesn't exist */
async function unlessMissing<Info>(request: Promise<Info>): Promise<Info | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === 404) return undefined;
    throw error;
  }
}
