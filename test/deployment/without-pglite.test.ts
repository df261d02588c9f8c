// The container image does not contain PGlite. A gateway with PostgreSQL must not need it, and a
// gateway without PostgreSQL must report what is missing. Here a module hook hides the packages.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { makeDataDir } from '../support/gateway-process.ts';

const dataUrl = (source: string): string =>
  `data:text/javascript,${encodeURIComponent(source).replaceAll("'", '%27')}`;

const resolver = dataUrl(`
  export function resolve(specifier, context, next) {
    if (!specifier.startsWith('@electric-sql/')) return next(specifier, context);
    throw Object.assign(new Error('Cannot find package ' + specifier), { code: 'ERR_MODULE_NOT_FOUND' });
  }`);
const hook = dataUrl(
  `import { register } from 'node:module'; register(${JSON.stringify(resolver)});`,
);
const withoutPglite = { NODE_OPTIONS: `--import=${hook}` };

test('a gateway with DATABASE_URL never loads PGlite', async () => {
  const database = await openTestDatabase('postgres');
  onTestFinished(() => database.remove());
  const cluster = await startCluster({ databaseUrl: database.location.databaseUrl ?? '' });
  onTestFinished(() => cluster[Symbol.asyncDispose]());

  const gateway = await cluster.startNode('a', withoutPglite);

  const isReady = async () => (await fetch(`${gateway.runtime.httpUrl}/ready`)).status === 200;
  await eventually(isReady, 'the gateway is ready');
});

test('a gateway without DATABASE_URL reports what to set', async () => {
  const dataDir = await makeDataDir();
  onTestFinished(() => dataDir.remove());
  const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
  const child = spawn(process.execPath, [main], {
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: dataDir.path,
      HTTP_PORT: '0',
      SIP_PORT: '0',
      ...withoutPglite,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);

  expect(code).toBe(1);
  expect(said).toContain('not installed here, as in the container image: set DATABASE_URL');
});
