// Opens the store that the configuration names.

import { openFolderStore } from './folder-store.ts';
import type { RecordingStore, StoreTarget } from './recording-store.ts';
import { openS3Store } from './s3-store.ts';

export function openRecordingStore(target: StoreTarget): RecordingStore {
  return target.kind === 'folder' ? openFolderStore(target) : openS3Store(target);
}
