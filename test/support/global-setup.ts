// Runs before the test files: starts one PostgreSQL for the run and makes a folder that the files
// share.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL for the superuser. Each test creates its own database. */
    readonly postgresUrl: string;
    /** The shared folder. It is removed at the end of the run. */
    readonly sharedFolder: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sharedFolder = await mkdtemp(join(tmpdir(), 'offhook-test-'));
  const postgres = await startPostgres();
  project.provide('postgresUrl', postgres.url);
  project.provide('sharedFolder', sharedFolder);
  return async () => {
    await postgres.stop();
    await rm(sharedFolder, { recursive: true, force: true });
  };
}
