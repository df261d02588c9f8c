// Stored recordings for a test: a folder as their store, and rows as the keeper leaves them.

import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../../src/lib/logger.ts';
import { createStoredRecordings, type StoredRecordings } from '../../src/recording/recordings.ts';
import { createRemoval, type Removal } from '../../src/recording/removal.ts';
import { openRecordingStore } from '../../src/recording/store/open-store.ts';
import {
  objectNames,
  type RecordingStore,
  type StoreTarget,
} from '../../src/recording/store/recording-store.ts';
import type { Database } from '../../src/store/database.ts';
import { RecordingReads } from '../../src/store/recordings/recording-reads.ts';
import { insertRows } from './tables.ts';

export type TestRecordings = {
  readonly store: RecordingStore;
  removalOf(database: Pick<Database, 'pool'>, store?: RecordingStore): Removal;
  servicesOf(database: Pick<Database, 'pool'>): StoredRecordings;
  /** Stores a recording of the call with this content, and its row. */
  add(
    database: Pick<Database, 'pool'>,
    call: { readonly callId: string; readonly accountId: string; readonly botId: string },
    content: Buffer,
    changes?: object,
  ): Promise<void>;
  stop(): Promise<void>;
};

export async function startTestRecordings(target?: StoreTarget): Promise<TestRecordings> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-recordings-'));
  const store = openRecordingStore(target ?? { kind: 'folder', path: join(folder, 'store') });
  const now = () => new Date();
  const readsOf = ({ pool }: Pick<Database, 'pool'>) => new RecordingReads(pool, now);
  const removalOf: TestRecordings['removalOf'] = (database, other = store) =>
    createRemoval({ reads: readsOf(database), store: other, logger: silentLogger });
  return {
    ...{ store, removalOf },
    servicesOf: (database) => createStoredRecordings(readsOf(database), store, removalOf(database)),
    async add({ pool }, { callId, accountId, botId }, content, changes = {}) {
      const startedAt = new Date('2026-11-28T12:00:00Z');
      const isEncrypted = 'keyName' in changes;
      const names = objectNames({ accountId, callId, startedAt, isEncrypted });
      const path = join(folder, 'content');
      await writeFile(path, content);
      await store.put(names.audio, path, 'audio/wav');
      await store.put(names.metadata, path, 'application/json');
      const at = new Date().toISOString();
      await insertRows(pool, 'recordings', [
        {
          ...{ callId, accountId, botId, ownerId: 'node-1/a', state: 'stored', startedAt },
          ...{ durationMs: 12_000, pausedMs: 0, bytes: content.length, incomplete: false },
          sha256: createHash('sha256').update(content).digest('hex'),
          ...{ audioName: names.audio, metadataName: names.metadata, location: 'file:///x' },
          ...{ createdAt: at, attempts: 1, nextAttemptAt: at, settledAt: at, eventSequence: 9 },
          ...{ announcedAt: at, expiresAt: '2036-01-01T00:00:00Z', ...changes },
        },
      ]);
    },
    async stop() {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
