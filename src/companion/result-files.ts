// Result files from batch tests, in a NATS object store. Usually the test runner stores the file,
// but if the file arrives as part of the message, we store it. We read files in chunks, as fast as
// the client can receive them, whereas the NATS client's own `get` would buffer the whole file for
// a slow client.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type ObjectInfo, type ObjectStore, Objm } from '@nats-io/obj';
import type { EventConnection } from '../events/connection.ts';
import { streamNames } from '../events/subjects.ts';

export type ResultFile = {
  readonly size: number;
  /** Fails if the store fails, or if the file doesn't match its digest. */
  readonly content: Readable;
};

export type ResultFiles = {
  /** Stores a file, unless a file with this name already exists. */
  put(name: string, content: string): Promise<void>;
  /** @returns undefined if the file does not exist or has expired */
  open(name: string): Promise<ResultFile | undefined>;
};

/** Opens the result file store. The gateway creates its bucket with the streams. */
export function createResultFiles(connection: EventConnection): ResultFiles {
  const opened = async (): Promise<ObjectStore> => {
    // Otherwise the request would wait for the reconnect until its time-out.
    if (!connection.connected()) throw new Error('NATS is unreachable');
    const { resultBucket } = streamNames(connection.prefix);
    return await new Objm(connection.jetstream).open(resultBucket, false);
  };
  return {
    async put(name, content) {
      const store = await opened();
      if (isFile(await store.info(name))) return;
      await store.putBlob({ name }, Buffer.from(content, 'utf8'));
    },
    async open(name) {
      const info = await (await opened()).info(name);
      if (!isFile(info)) return undefined;
      return { size: info.size, content: streamOf(chunksOf(connection, info)) };
    },
  };
}

/** Excludes links, because a link could point into a different bucket. */
function isFile(info: ObjectInfo | null): info is ObjectInfo {
  return info !== null && !info.deleted && info.options?.link === undefined;
}

/** Note the bytes mode. In object mode, the stream would read sixteen chunks ahead. */
function streamOf(chunks: AsyncGenerator<Uint8Array>): Readable {
  return Readable.from(chunks, { objectMode: false });
}

async function* chunksOf(
  { manager }: EventConnection,
  { bucket, nuid, chunks, digest }: ObjectInfo,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let sequence = 1;
  for (let chunk = 1; chunk <= chunks; chunk += 1) {
    const message = await manager.direct.getMessage(`OBJ_${bucket}`, {
      seq: sequence,
      next_by_subj: `$O.${bucket}.C.${nuid}`,
    });
    if (message === null) throw new Error('the result file was replaced while it was read');
    sequence = message.seq + 1;
    hash.update(message.data);
    // Check the digest before sending the last chunk. If it doesn't match, we never send that
    // chunk, so the reader can tell that the file is incomplete.
    if (chunk === chunks && !isSameDigest(digest, hash.digest())) {
      throw new Error('the result file does not match its digest');
    }
    yield message.data;
  }
}

function isSameDigest(stated: string, found: Buffer): boolean {
  return Buffer.from(stated.replace(/^SHA-256=/, ''), 'base64url').equals(found);
}
