// Counts the system calls of a gateway during some calls with strace. This happens outside the
// measured rounds, because a traced process takes several times the CPU time and its waits are
// shorter.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { makeDataDir } from '../../support/gateway-process.ts';

const mostShown = 8;

export async function countSystemCalls(
  name: string,
  pid: number,
  calls: number,
  work: () => Promise<unknown>,
): Promise<void> {
  const folder = await makeDataDir();
  const output = join(folder.path, 'counts');
  try {
    const strace = await attach(pid, output);
    if (strace === undefined) {
      console.log(`\n  ${name}: cannot count system calls: strace is missing or may not attach`);
      return;
    }
    const ended = once(strace, 'exit');
    try {
      await work();
    } finally {
      // strace then detaches and writes its table.
      strace.kill('SIGINT');
      await ended;
    }
    report(name, calls, await readFile(output, 'utf8'));
  } finally {
    await folder.remove();
  }
}

async function attach(pid: number, output: string): Promise<ChildProcess | undefined> {
  const strace = spawn('strace', ['-c', '-f', '-o', output, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let failed = false;
  let printed = '';
  strace.on('error', () => {
    failed = true;
  });
  strace.on('exit', () => {
    failed = true;
  });
  strace.stderr.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  await eventually(() => failed || printed.includes('attached'), 'strace has attached');
  return failed ? undefined : strace;
}

/**
 * Prints the most frequent system calls. The columns of the table are: % time, seconds, usecs/call,
 * calls, errors (may be missing), syscall.
 */
function report(name: string, calls: number, table: string): void {
  const counts = [...table.matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) (?:.* )?(\w+)$/gm)]
    .map(([, count, syscall]) => ({ syscall, count: Number(count) / calls }))
    .filter(({ syscall }) => syscall !== 'total')
    .toSorted((one, other) => other.count - one.count);
  const sum = counts.reduce((total, { count }) => total + count, 0);
  const most = counts.slice(0, mostShown).map((entry) => {
    return `${entry.syscall} ${entry.count.toFixed(0)}`;
  });
  console.log(
    `\n  ${name}: ${sum.toFixed(0)} system calls of the gateway process per call (strace, ${calls} calls): ${most.join(', ')}`,
  );
}
