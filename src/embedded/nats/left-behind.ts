// Stops a nats-server that has outlived its gateway, because the gateway was killed. Two servers
// must never use the same store, so we can't start a new server until the old one is gone. Its
// process id may belong to some other process by now, which is why we check the command line before
// sending a signal.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { NatsFiles } from './nats-identity.ts';

const run = promisify(execFile);

/**
 * JetStream usually closes its files within this time. If it hasn't, we kill the process, which the
 * store survives just as it survives a power cut.
 */
const terminateTimeoutMs = 5_000;
const killTimeoutMs = 2_000;
const pollMs = 20;

/**
 * Returns `none` if there's no server left from an earlier run, or `unknown` if its process id now
 * belongs to another program.
 */
export async function endLeftBehind(files: NatsFiles): Promise<'none' | 'ended' | 'unknown'> {
  const pid = await readPid(files.pid);
  if (pid === undefined || !isAlive(pid)) return 'none';
  if (!(await commandLine(pid)).includes(files.configuration)) return 'unknown';
  signal(pid, 'SIGTERM');
  if (await isGoneWithin(pid, terminateTimeoutMs)) return 'ended';
  signal(pid, 'SIGKILL');
  if (await isGoneWithin(pid, killTimeoutMs)) return 'ended';
  throw new Error(
    `nats-server (process ${pid}) of an earlier start does not end; kill it and start again`,
  );
}

async function readPid(path: string): Promise<number | undefined> {
  try {
    const pid = Number.parseInt(await readFile(path, 'utf8'), 10);
    return Number.isSafeInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

async function commandLine(pid: number): Promise<string> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ');
  } catch {
    // There's no /proc on macOS and the BSDs.
  }
  try {
    return (await run('ps', ['-o', 'args=', '-p', String(pid)])).stdout;
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended in the meantime.
  }
}

async function isGoneWithin(pid: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline) {
    if (!isAlive(pid) || (await isZombie(pid))) return true;
    await pause(pollMs);
  }
  return false;
}

/**
 * A zombie is a process that has ended but whose exit code hasn't been collected by its parent yet.
 * In a container, that may never happen.
 */
async function isZombie(pid: number): Promise<boolean> {
  try {
    return /\) Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
