// Creates missing streams and buckets, and updates existing ones to the configuration. We use only
// features of nats-server 2.9.10, because that's the version in Debian.
//
// We create the buckets as streams, with the subjects of NATS's ADR-8 (key-value) and ADR-20
// (objects), because the client's own functions can't set every limit.

import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
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
const unlimited = -1;
/** In a cluster, unless NATS_REPLICAS says otherwise: one server may fail without any loss. */
const replicasInCluster = 3;

export type StreamSettings = {
  readonly eventDays: number;
  readonly contextHours: number;
  /**
   * How many servers keep a copy of each new stream. Default: 3 if the server belongs to a cluster,
   * else 1.
   */
  readonly replicas?: number | undefined;
  /** Limits the size of the calls stream, and those of the others in proportion. */
  readonly maxBytes?: number | undefined;
};

export type WantedStream = Pick<
  StreamConfig,
  | 'name'
  | 'subjects'
  | 'retention'
  | 'discard'
  | 'max_age'
  | 'duplicate_window'
  | 'max_bytes'
  | 'allow_direct'
> &
  Partial<Pick<StreamConfig, 'max_msgs_per_subject' | 'allow_rollup_hdrs'>>;

/** @throws NatsUnavailable before the first connection */
export function replicasFor({ nats }: EventConnection, { replicas }: StreamSettings): number {
  return replicas ?? (nats.info?.cluster === undefined ? 1 : replicasInCluster);
}

export function wantedStreams(prefix: string, settings: StreamSettings): readonly WantedStream[] {
  const names = streamNames(prefix);
  const { maxBytes } = settings;
  const share = (divisor: number): number =>
    maxBytes === undefined ? unlimited : Math.ceil(maxBytes / divisor);
  const kept = keptFor(settings.eventDays * dayMs);
  const limits = { retention: RetentionPolicy.Limits, discard: DiscardPolicy.Old };
  return [
    {
      ...{ name: names.calls, subjects: [`${prefix}.call.>`], ...limits, ...kept },
      max_bytes: share(1),
      // To read a call's events, we need a subject's next message, which only the direct API can
      // return.
      allow_direct: true,
    },
    {
      name: names.ingest,
      // We list the kinds instead of using a wildcard, so that the server rejects unknown kinds.
      subjects: ingestKinds.map((kind) => ingestSubject(prefix, kind, '*')),
      ...{ ...limits, ...kept },
      max_bytes: share(4),
      allow_direct: false,
    },
    {
      ...{ name: names.dead, subjects: [`${prefix}.dead.>`], ...limits, ...kept },
      max_bytes: forPeopleMaxBytes,
      allow_direct: true,
    },
    {
      ...{ name: names.alerts, subjects: [`${prefix}.alert.>`], ...limits, ...kept },
      max_bytes: forPeopleMaxBytes,
      allow_direct: true,
    },
    {
      ...{ name: `KV_${names.contextBucket}`, subjects: [`$KV.${names.contextBucket}.>`] },
      // Usually a full bucket refuses new values. But an event is published only after its context
      // has been written, and the oldest contexts belong to calls that ended long ago.
      ...{ ...limits, ...keptFor(settings.contextHours * hourMs) },
      max_bytes: share(8),
      allow_direct: true,
      max_msgs_per_subject: 1,
      allow_rollup_hdrs: true,
    },
    {
      name: `OBJ_${names.resultBucket}`,
      subjects: [`$O.${names.resultBucket}.C.>`, `$O.${names.resultBucket}.M.>`],
      ...{ ...limits, ...kept },
      // A full bucket refuses files, because without its oldest chunk a file is useless.
      discard: DiscardPolicy.New,
      max_bytes: share(8),
      allow_direct: true,
      allow_rollup_hdrs: true,
    },
  ];
}

function keptFor(maxAgeMs: number): Pick<StreamConfig, 'max_age' | 'duplicate_window'> {
  return {
    max_age: nanos(maxAgeMs),
    // The server rejects a window that exceeds the maximum age.
    duplicate_window: nanos(Math.min(duplicateWindowMs, maxAgeMs)),
  };
}

/**
 * Creates the stream with `replicas` if it is missing. Otherwise updates everything but its
 * replicas: nats-server 2.9 has lost acknowledged messages while replicas were added.
 */
export async function ensureStream(
  connection: EventConnection,
  wanted: WantedStream,
  replicas: number,
): Promise<StreamInfo> {
  const existing = await streamInfo(connection, wanted.name);
  if (existing === undefined) return await createStream(connection, wanted, replicas);
  const { retention } = existing.config;
  if (retention !== wanted.retention) {
    throw new Error(
      `the stream ${wanted.name} exists with retention ${retention}; remove it or set a different NATS_PREFIX`,
    );
  }
  if (isUpToDate(existing.config, wanted)) return existing;
  const { name, retention: _fixed, ...changeable } = wanted;
  return await connection.manager.streams.update(name, changeable);
}

/** @returns undefined if the stream doesn't exist */
export async function streamInfo(
  { manager }: EventConnection,
  name: string,
): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (isRefusedFor(error, JetStreamApiCodes.StreamNotFound)) return undefined;
    throw error;
  }
}

/** Codes of nats-server's errors that the client doesn't name. */
const replicasWithoutCluster = 10_074;
const insufficientStorage = 10_047;

/** @throws Error that names the variable to change if the server can't create such a stream */
export async function createStream(
  { manager }: EventConnection,
  wanted: WantedStream,
  replicas: number,
): Promise<StreamInfo> {
  const config = { ...wanted, storage: StorageType.File, num_replicas: replicas };
  try {
    return await manager.streams.add(config);
  } catch (cause) {
    if (isRefusedFor(cause, replicasWithoutCluster)) {
      throw new Error(
        `NATS_REPLICAS is ${replicas}, but the NATS server does not belong to a cluster`,
        { cause },
      );
    }
    if (isRefusedFor(cause, insufficientStorage)) {
      throw new Error(
        `the NATS server has no room for the stream ${wanted.name} with ${wanted.max_bytes} bytes; lower NATS_MAX_BYTES or raise the server's max_file_store`,
        { cause },
      );
    }
    throw cause;
  }
}

function isRefusedFor(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}

function isUpToDate(existing: StreamConfig, wanted: WantedStream): boolean {
  return (
    existing.max_age === wanted.max_age &&
    existing.duplicate_window === wanted.duplicate_window &&
    existing.max_bytes === wanted.max_bytes &&
    existing.discard === wanted.discard &&
    (existing.allow_direct ?? false) === wanted.allow_direct &&
    JSON.stringify(existing.subjects) === JSON.stringify(wanted.subjects)
  );
}
