// What the machine detection bench listens to: the recordings of the test set.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { readManifest } from '../../../src/cli/amd/amd-manifest.ts';
import { readWav } from '../../../src/cli/amd/amd-wav.ts';

export async function readRecordings(): Promise<readonly Int16Array[]> {
  const path = fileURLToPath(new URL('../../fixtures/amd/manifest.csv', import.meta.url));
  const { files } = await readManifest(path);
  return Promise.all(
    files.map(async (file) => {
      const result = readWav(await readFile(file), 1);
      if (result.kind === 'unreadable') throw new Error(`${file}: ${result.problem}`);
      return result.recording.samples;
    }),
  );
}
