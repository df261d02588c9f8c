// A worker thread that stores recordings, so that reading, hashing and encrypting them for the line
// costs the calls nothing.

import { parentPort, workerData } from 'node:worker_threads';
import { openRecordingStore } from './open-store.ts';
import type { Done, StoreTarget } from './recording-store.ts';

/** A recording's two files, and the names under which they are stored. */
export type Upload = {
  readonly audio: { readonly path: string; readonly name: string; readonly contentType: string };
  readonly metadata: { readonly path: string; readonly name: string };
};

export type UploadRequest = { readonly id: number; readonly upload: Upload };
/** `error`: a mistake of ours, or of the file system under the spool. */
export type UploadReply = { readonly id: number } & (
  | { readonly done: Done }
  | { readonly error: string }
);

const store = openRecordingStore(workerData as StoreTarget);

/** The metadata comes last: whoever finds it finds the recording too. */
async function put({ audio, metadata }: Upload): Promise<Done> {
  const done = await store.put(audio.name, audio.path, audio.contentType);
  return done.ok ? await store.put(metadata.name, metadata.path, 'application/json') : done;
}

parentPort?.on('message', ({ id, upload }: UploadRequest) => {
  const reply = (message: UploadReply): void => parentPort?.postMessage(message);
  put(upload).then(
    (done) => reply({ id, done }),
    (error: unknown) => reply({ id, error: error instanceof Error ? error.message : 'unknown' }),
  );
});
