// `npx offhook` must run the command of the checkout. The name is free in the public registry, so a
// foreign package with that name would be run if npx asked the registry.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  readonly version: string;
  readonly private?: boolean;
};

test('npx finds the command in the checkout without asking a registry', async () => {
  const home = await mkdtemp(join(tmpdir(), 'offhook-npm-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));

  const { stdout } = await promisify(execFile)('npx', ['offhook', '--version'], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: home, npm_config_offline: 'true' },
  });

  expect(stdout.trim()).toBe(manifest.version);
});

test('npm refuses to publish the package', () => {
  expect(manifest.private).toBe(true);
});
