// The recordings as the API offers them: reads what is stored, whole or in part, and deletes it.

import { text } from 'node:stream/consumers';
import type { RecordingReads, RecordingScope } from '../store/recordings/recording-reads.ts';
import type { RecordingRow } from '../store/recordings/recording-rows.ts';
import { type RecordingMetadata, recordingMetadataSchema } from './recording-metadata.ts';
import type { Removal } from './removal.ts';
import type { ByteRange, Done, ReadObject, RecordingStore } from './store/recording-store.ts';

/** Enough for the most pauses of a recording (10,000), and as many gaps. */
const maxMetadataBytes = 8 * 1024 * 1024;

/** What a client finds at the address of a call's recording. */
export type FoundRecording =
  | { readonly kind: 'unknown' }
  /** It is being recorded, or on its way to the store. */
  | { readonly kind: 'not-stored' }
  | { readonly kind: 'failed'; readonly reason: string; readonly row: RecordingRow }
  | { readonly kind: 'deleted'; readonly at: Date; readonly by: string }
  | {
      readonly kind: 'stored';
      readonly row: RecordingRow;
      readonly bytes: number;
      readonly sha256: string;
      /** Name of the account's key, if the bytes are encrypted. */
      readonly keyName: string | undefined;
    };

export type StoredRecordings = {
  find(scope: RecordingScope, callId: string): Promise<FoundRecording>;
  read(recording: RecordingRow, range?: ByteRange): Promise<ReadObject>;
  /** @returns undefined if the store doesn't have it, or has something else */
  metadata(recording: RecordingRow): Promise<RecordingMetadata | undefined>;
  /** Undefined if the store can't make links. */
  readonly link?: (recording: RecordingRow, seconds: number) => Promise<string>;
  /**
   * Deletes a recording, also one that isn't stored yet. Succeeds if it is already deleted.
   *
   * @param by the id of an app
   * @returns `under-way` until the call is settled
   */
  remove(
    scope: RecordingScope,
    callId: string,
    by: string,
  ): Promise<Done | 'unknown' | 'under-way'>;
};

export function createStoredRecordings(
  reads: RecordingReads,
  store: RecordingStore,
  removal: Removal,
): StoredRecordings {
  const { link } = store;
  return {
    async find(scope, callId) {
      const row = await reads.find(scope, callId);
      if (row !== undefined) return found(row);
      return { kind: (await reads.isUnderWay(scope, callId)) ? 'not-stored' : 'unknown' };
    },
    read: ({ audioName }, range) => store.read(audioName ?? '', range),
    metadata: ({ metadataName }) => readMetadata(store, metadataName ?? ''),
    ...(link === undefined
      ? {}
      : { link: ({ audioName }, seconds) => link(audioName ?? '', seconds) }),
    async remove(scope, callId, by) {
      const row = await reads.find(scope, callId);
      if (row !== undefined) {
        return row.deletedAt === null ? await removal.remove(row, by) : { ok: true };
      }
      const marked = await reads.markSpooled({ scope, callId }, by);
      if (marked > 0) return { ok: true };
      return (await reads.isUnderWay(scope, callId)) ? 'under-way' : 'unknown';
    },
  };
}

async function readMetadata(
  store: RecordingStore,
  name: string,
): Promise<RecordingMetadata | undefined> {
  const read = await store.read(name);
  if (read.kind !== 'found') return undefined;
  if (read.bytes > maxMetadataBytes) {
    read.content.destroy();
    return undefined;
  }
  // The store may break off while it is read.
  return metadataIn(await text(read.content).catch(() => ''));
}

function metadataIn(json: string): RecordingMetadata | undefined {
  try {
    return recordingMetadataSchema.parse(JSON.parse(json));
  } catch {
    return undefined;
  }
}

function found(row: RecordingRow): FoundRecording {
  if (row.deletedAt !== null)
    return { kind: 'deleted', at: row.deletedAt, by: row.deletedBy ?? '' };
  switch (row.state) {
    case 'finishing':
    case 'storing':
      return { kind: 'not-stored' };
    case 'failed':
      return { kind: 'failed', reason: row.fault ?? 'lost', row };
    case 'stored':
      return {
        ...{ kind: 'stored', row, bytes: Number(row.bytes), sha256: row.sha256 ?? '' },
        keyName: row.keyName ?? undefined,
      };
  }
}
