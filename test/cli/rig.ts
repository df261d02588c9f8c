// Runs commands of the command line against a gateway's API with a real database.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { loadConfig } from '../../src/config.ts';
import { startRig } from '../companion/support.ts';
import { forSuite } from '../support/opened.ts';
import { removeFolder, temporaryFolder } from './support.ts';

type Services = NonNullable<NonNullable<Parameters<typeof startRig>[1]>['services']>;

/** Starts the API for the suite. Commands act as the rig's app `acme`. */
export function forCliSuite(services: Services) {
  let folder: string;
  let httpUrl: string;
  const printed: string[] = [];
  const notes: string[] = [];
  const rig = forSuite(() => startRig('pglite', { services }));
  beforeAll(async () => {
    folder = await temporaryFolder();
    httpUrl = await rig.server.listen({ host: '127.0.0.1', port: 0 });
    const secrets = { webhookSecret: 'w', streamSecret: 's' };
    await writeFile(join(folder, 'dev-app.json'), JSON.stringify({ ...rig.acme, ...secrets }));
  });
  afterEach(async () => {
    printed.length = 0;
    notes.length = 0;
    await rig.clear();
  });
  afterAll(() => removeFolder(folder));
  const context = (): CliContext => ({
    config: loadConfig({ DATA_DIR: folder }),
    gateway: async () => ({ httpUrl }),
    print: (line) => printed.push(line),
    note: (line) => notes.push(line),
    interrupted: new AbortController().signal,
  });
  return { rig, printed, notes, context, folder: () => folder };
}
