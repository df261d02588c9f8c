// What a run left behind: events, POSTs, alerts, and the objects in the bucket.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { decryptRecordingFile } from '../../../src/recording/formats/decrypt-file.ts';
import {
  type RecordingMetadata,
  recordingMetadataSchema,
} from '../../../src/recording/recording-metadata.ts';
import { openRecordingStore } from '../../../src/recording/store/open-store.ts';
import type { RecordingStore } from '../../../src/recording/store/recording-store.ts';
import type { RecordingWorld } from './recording-world.ts';

export type StoredFile = {
  /** The bytes as stored. */
  readonly file: Buffer;
  /** The WAV file, decrypted if it was encrypted. */
  readonly wav: Buffer;
  readonly metadata: RecordingMetadata;
};

const locationPrefix = 's3://recordings/calls/';

/** Reads recordings from the bucket, past the proxy. */
export class BucketReader implements AsyncDisposable {
  readonly #world: RecordingWorld;
  readonly #store: RecordingStore;

  constructor(world: RecordingWorld) {
    this.#world = world;
    this.#store = openRecordingStore(world.parts.s3.target);
  }

  /** @throws Error if the bucket lacks an object, or the file can't be decrypted */
  async read(location: string): Promise<StoredFile> {
    const name = location.slice(locationPrefix.length);
    const file = await this.#object(name);
    const text = await this.#object(name.replace(/\.wav(\.enc)?$/, '.json'));
    const metadata = recordingMetadataSchema.parse(JSON.parse(text.toString()));
    const wav = name.endsWith('.enc') ? await this.#decrypt(file) : file;
    return { file, wav, metadata };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store.close();
  }

  async #object(name: string): Promise<Buffer> {
    const read = await this.#store.read(name);
    if (read.kind !== 'found') throw new Error(`the bucket lacks ${name}: ${read.kind}`);
    return await buffer(read.content);
  }

  async #decrypt(file: Buffer): Promise<Buffer> {
    const folder = await mkdtemp(join(tmpdir(), 'offhook-decrypt-'));
    try {
      const [from, to] = [join(folder, 'from'), join(folder, 'to')];
      await writeFile(from, file);
      const decrypted = await decryptRecordingFile(from, to, this.#world.privateKey);
      if (!decrypted.ok) throw new Error(`does not decrypt: ${decrypted.problem}`);
      return await readFile(to);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** Returns the folders of recordings that are still in the spool. */
export async function spoolFolders(world: RecordingWorld): Promise<readonly string[]> {
  const folder = world.parts.spool;
  const owners = await readdir(folder, { withFileTypes: true });
  const folders = owners
    .filter((owner) => owner.isDirectory())
    .map(async ({ name }) => (await readdir(join(folder, name))).map((one) => `${name}/${one}`));
  return (await Promise.all(folders)).flat();
}

export type SeenAlert = { readonly at: number; readonly alert: string; readonly reason: string };

/** Returns the alerts about recordings that are on the stream. */
export async function alertsOnStream(natsUrl: string): Promise<readonly SeenAlert[]> {
  const { host, username: user, password: pass } = new URL(natsUrl);
  const connection = await connect({ servers: host, user, pass });
  try {
    const consumer = await jetstream(connection).consumers.get('offhook_alerts');
    const { num_pending: pending } = await consumer.info();
    const alerts: SeenAlert[] = [];
    if (pending === 0) return alerts;
    for await (const message of await consumer.consume()) {
      const { time, data } = message.json<{
        time: string;
        data?: { alert?: string; reason?: string };
      }>();
      const { alert = '', reason = '' } = data ?? {};
      if (alert.startsWith('recording')) alerts.push({ at: Date.parse(time), alert, reason });
      if (message.info.pending === 0) break;
    }
    return alerts;
  } finally {
    await connection.close();
  }
}
