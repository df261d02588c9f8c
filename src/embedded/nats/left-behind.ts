// Ends the nats-server that an earlier, killed process of ours left. Its store is ours alone, so a new server may only
// start when the old one is gone; and a process id may have been given to another process since, so the command line is
// compared before anything is signalled.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { NatsFiles } from './nats-identity.ts';

const run = promisify(execFile);

/** JetStream closes its files within this; after it the process is killed, which it survives as well as a power cut. */
const politeMs = 5_000;
const killedMs = 2_000;
const pollMs = 20;

/** `none`: nothing was left. `unknown`: there is a process of that id, but it is not ours. */
export async function endLeftBehind(files: NatsFiles): Promise<'none' | 'ended' | 'unknown'> {
  const pid = await readPid(files.pid);
  if (pid === undefined || !isAlive(pid)) return 'none';
  if (!(await commandLine(pid)).includes(files.configuration)) return 'unknown';
  signal(pid, 'SIGTERM');
  if (await isGoneWithin(pid, politeMs)) return 'ended';
  signal(pid, 'SIGKILL');
  if (await isGoneWithin(pid, killedMs)) return 'ended';
  throw new Error(
    `nats-server (process ${pid}) of an earlier start does not end; end it and start again`,
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
    // No /proc on macOS and the BSDs.
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
    // It ended in between.
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

/** Ended, but its parent has not asked for the exit code; in a container that parent may never do. */
async function isZombie(pid: number): Promise<boolean> {
  try {
    return /\) Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
