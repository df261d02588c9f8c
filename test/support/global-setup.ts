// Before any test file: one PostgreSQL for the run, and a folder for what the files share.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of a superuser; each test makes a database of its own. */
    readonly postgresUrl: string;
    /** Removed at the end of the run. */
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
