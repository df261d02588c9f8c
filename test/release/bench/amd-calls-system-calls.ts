// Counts the system calls of each thread of a gateway during some calls with strace. This happens
// outside the measured rounds, because a traced process takes several times the CPU time and its
// waits are shorter.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { makeDataDir } from '../../support/gateway-process.ts';
import type { CpuPart } from './amd-calls-gateway.ts';

const mostShown = 6;

/** @param threads the threads to count, by part of the gateway */
export async function countSystemCalls(
  name: string,
  threads: ReadonlyMap<CpuPart, readonly number[]>,
  calls: number,
  work: () => Promise<unknown>,
): Promise<void> {
  const folder = await makeDataDir();
  const traces: Trace[] = [];
  try {
    for (const [part, ids] of threads) {
      const trace = await attach(part, ids, join(folder.path, `counts-${traces.length}`));
      if (trace === undefined) {
        console.log(`\n  ${name}: cannot count system calls: strace is missing or may not attach`);
        return;
      }
      traces.push(trace);
    }
    const startedAt = performance.now();
    await work();
    const seconds = (performance.now() - startedAt) / 1_000;
    console.log(`\n  ${name}: system calls (strace, ${calls} calls, ${seconds.toFixed(0)} s)`);
    for (const trace of traces) report(trace.part, await trace.end(), { calls, seconds });
  } finally {
    for (const trace of traces) await trace.end();
    await folder.remove();
  }
}

type Trace = {
  readonly part: string;
  /** Detaches, and returns the table that strace then writes. */
  readonly end: () => Promise<string>;
};

async function attach(
  part: string,
  threads: readonly number[],
  output: string,
): Promise<Trace | undefined> {
  const ids = threads.flatMap((thread) => ['-p', String(thread)]);
  const strace = spawn('strace', ['-c', '-o', output, ...ids], {
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
  await eventually(
    () => failed || printed.split('attached').length > threads.length,
    'strace has attached',
  );
  if (failed) return undefined;
  return { part, end: () => ended(strace, output) };
}

async function ended(strace: ChildProcess, output: string): Promise<string> {
  if (strace.exitCode === null && strace.signalCode === null) {
    strace.kill('SIGINT');
    await once(strace, 'exit');
  }
  return readFile(output, 'utf8');
}

/**
 * Prints the most frequent system calls. The columns of the table are: % time, seconds, usecs/call,
 * calls, errors (may be missing), syscall.
 */
function report(
  part: string,
  table: string,
  { calls, seconds }: { readonly calls: number; readonly seconds: number },
): void {
  const counts = [...table.matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) (?:.* )?(\w+)$/gm)]
    .map(([, count, syscall]) => ({ syscall, count: Number(count) }))
    .filter(({ syscall }) => syscall !== 'total')
    .toSorted((one, other) => other.count - one.count);
  const sum = counts.reduce((total, { count }) => total + count, 0);
  const most = counts
    .slice(0, mostShown)
    .map(({ syscall, count }) => `${syscall} ${(count / calls).toFixed(0)}`);
  const rate = `${(sum / calls).toFixed(0)} per call, ${(sum / seconds).toFixed(0)} per s`;
  console.log(`    ${part.padEnd(26)} ${rate.padEnd(28)} per call: ${most.join(', ')}`);
}
