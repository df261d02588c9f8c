// Where recordings are stored, apart from the database: a folder or a bucket. What can go wrong
// with a store is returned as a value, because the keeper decides by it, and people read it.

import type { Readable } from 'node:stream';

export type FolderTarget = { readonly kind: 'folder'; readonly path: string };

export type BucketTarget = {
  readonly kind: 's3';
  readonly bucket: string;
  /** The names of recordings follow it. Has no slash at its ends, and may be empty. */
  readonly prefix: string;
  /** Undefined if the bucket is at AWS, in the region. */
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
};

export type StoreTarget = FolderTarget | BucketTarget;

export type StoreFault = {
  /**
   * - `unreachable`: the store doesn't respond, or responds that it has failed.
   * - `refused`: it responds, and will refuse until somebody changes something.
   * - `full`: it has no space left.
   * - `slow`: it didn't take the data in time.
   */
  readonly kind: 'unreachable' | 'refused' | 'full' | 'slow';
  /** The store's own word, e.g. `NoSuchBucket` or `ENOSPC`. */
  readonly code: string;
  /** What is wrong, for operators. Contains no secret, and no number of a person. */
  readonly detail: string;
};

export type Done = { readonly ok: true } | { readonly ok: false; readonly fault: StoreFault };

/** Both ends are included. */
export type ByteRange = { readonly start: number; readonly end: number };

export type ReadObject =
  | { readonly kind: 'found'; readonly content: Readable; readonly bytes: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly fault: StoreFault };

export type RecordingStore = {
  /**
   * Stores the file under the name, in place of what has the name. Nothing has the name until the
   * whole file is there.
   */
  put(name: string, path: string, contentType: string): Promise<Done>;
  /** The caller must read the content to its end, or destroy it. */
  read(name: string, range?: ByteRange): Promise<ReadObject>;
  /** Succeeds if nothing has the name. */
  remove(name: string): Promise<Done>;
  /** Returns an address from which anybody can read the object for this time. */
  readonly link?: (name: string, seconds: number) => Promise<string>;
  /** Writes a small object and removes it. */
  check(): Promise<Done>;
  /** Where objects with this name are, for people and events. Contains no secret. */
  locationOf(name: string): string;
  close(): Promise<void>;
};

/** Names the store for people. */
export function describeTarget(target: StoreTarget): string {
  return target.kind === 'folder'
    ? target.path
    : `s3://${[target.bucket, target.prefix].filter((part) => part !== '').join('/')}`;
}

/**
 * Returns the names of a recording's objects. The day is the one on which the recording began, in
 * UTC.
 */
export function objectNames(recording: {
  readonly accountId: string;
  readonly callId: string;
  readonly startedAt: Date;
  readonly isEncrypted: boolean;
}): { readonly audio: string; readonly metadata: string } {
  const { accountId, callId, startedAt, isEncrypted } = recording;
  const folder = `${accountId}/${startedAt.toISOString().slice(0, 10).replaceAll('-', '/')}`;
  return {
    audio: `${folder}/${callId}.wav${isEncrypted ? '.enc' : ''}`,
    metadata: `${folder}/${callId}.json`,
  };
}
