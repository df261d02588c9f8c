// A container engine of the test's own. It runs in the namespaces of this process.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { composePlugin, engineProgram } from './programs.ts';
import { run, say } from './run.ts';

const startTimeoutMs = 60_000;

export type Engine = AsyncDisposable & { readonly logFile: string };

/**
 * Starts the engine. From then on, `docker` and `docker compose` use it, in this process and its
 * children.
 */
export async function startEngine(cache: string): Promise<Engine> {
  const state = join(cache, 'state');
  await rm(state, { recursive: true, force: true });
  await mkdir(join(state, 'config', 'cli-plugins'), { recursive: true });
  await cp(composePlugin(cache), join(state, 'config', 'cli-plugins', 'docker-compose'));
  const socket = `unix://${join(state, 'docker.sock')}`;
  process.env['DOCKER_HOST'] = socket;
  process.env['DOCKER_CONFIG'] = join(state, 'config');
  const logFile = join(state, 'dockerd.log');
  const log = openSync(logFile, 'w');
  const child = spawn(
    engineProgram,
    [
      ...[
        '--host',
        socket,
        '--data-root',
        join(cache, 'docker'),
        '--exec-root',
        join(state, 'exec'),
      ],
      ...['--pidfile', join(state, 'dockerd.pid'), '--bridge=none', '--iptables=false'],
      ...['--ip6tables=false', '--ip-forward=false'],
    ],
    {
      stdio: ['ignore', log, log],
      env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/sbin` },
    },
  );
  await eventually(() => answers(child, logFile), 'the container engine answers', startTimeoutMs);
  // Removes the containers and volumes that a killed run left.
  await run('sh', ['-c', 'docker ps -aq | xargs -r docker rm -fv']);
  await run('docker', ['volume', 'prune', '-f']);
  say(`the engine is up, storage ${(await run('docker', ['info', '-f', '{{.Driver}}'])).trim()}`);
  return {
    logFile,
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}

async function answers(child: ChildProcess, logFile: string): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`dockerd ended, see ${logFile}`);
  return run('docker', ['info']).then(
    () => true,
    () => false,
  );
}
