// Streams and buckets: created at start if missing, checked and brought up to the configuration if present. Only what
// nats-server 2.9.10 (Debian's) can do.

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
/** Longer than any retry of a publisher that is alive; a process that was away longer drops by id at the consumer. */
const duplicateWindowMs = 2 * 60_000;
/** Dead letters and alerts are for people to look at; they must not fill the disk. */
const forPeopleMaxBytes = 64 * 1024 * 1024;

export type Retention = { readonly eventDays: number; readonly contextHours: number };

type WantedStream = Pick<
  StreamConfig,
  'name' | 'subjects' | 'retention' | 'max_age' | 'duplicate_window' | 'max_bytes' | 'allow_direct'
>;

/** @throws Error where a stream of that name exists with another purpose. */
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
      // The server refuses a window that is longer than the age.
      duplicate_window: nanos(Math.min(duplicateWindowMs, maxAgeMs)),
      max_bytes: -1,
      // Reading one call back asks for the next message of a subject, which the older API cannot.
      allow_direct: true,
    },
    {
      name: names.ingest,
      // Each kind by name: what is published about another kind is refused, and not stored in vain.
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
  const present = await orUndefined(streams.info(wanted.name));
  if (present === undefined) {
    await streams.add({ ...wanted, storage: StorageType.File, discard: DiscardPolicy.Old });
    return;
  }
  if (present.config.retention !== wanted.retention) {
    throw new Error(
      `the stream ${wanted.name} exists with retention ${present.config.retention}; remove it or set another NATS_PREFIX`,
    );
  }
  if (isUpToDate(present.config, wanted)) return;
  const { name, retention: _fixed, ...changeable } = wanted;
  await streams.update(name, changeable);
}

function isUpToDate(present: StreamConfig, wanted: WantedStream): boolean {
  return (
    present.max_age === wanted.max_age &&
    present.duplicate_window === wanted.duplicate_window &&
    present.max_bytes === wanted.max_bytes &&
    (present.allow_direct ?? false) === wanted.allow_direct &&
    JSON.stringify(present.subjects) === JSON.stringify(wanted.subjects)
  );
}

async function ensureContextBucket(connection: EventConnection, ttlMs: number): Promise<void> {
  const bucket = streamNames(connection.prefix).contextBucket;
  const stream = `KV_${bucket}`;
  const present = await orUndefined(connection.manager.streams.info(stream));
  if (present === undefined) {
    const kvm = new Kvm(connection.jetstream);
    await kvm.create(bucket, { history: 1, ttl: ttlMs, storage: StorageType.File });
    return;
  }
  if (present.config.max_age === nanos(ttlMs)) return;
  await connection.manager.streams.update(stream, {
    max_age: nanos(ttlMs),
    duplicate_window: nanos(Math.min(duplicateWindowMs, ttlMs)),
  });
}

/** Of an API request: undefined where the thing does not exist. */
async function orUndefined<Info>(request: Promise<Info>): Promise<Info | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === 404) return undefined;
    throw error;
  }
}
