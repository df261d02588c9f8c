// Reads the audio of the machine detection bench: the recordings of the test set.

import { fileURLToPath } from 'node:url';
import { readManifest, readSamples } from '../../amd-corpus/score/manifest.ts';

export async function readRecordings(): Promise<readonly Int16Array[]> {
  const path = fileURLToPath(new URL('../../fixtures/amd/manifest.csv', import.meta.url));
  const labelled = await readManifest(path);
  return await Promise.all(labelled.map(({ file }) => readSamples(file)));
}
