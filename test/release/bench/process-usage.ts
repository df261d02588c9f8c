// CPU and memory of a process and its threads, read from /proc (Linux).

import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';

/** USER_HZ: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

export async function cpuSeconds(pid: number): Promise<number> {
  const { own } = await cpuTimes(pid);
  return own;
}

/** Returns the CPU time of the process, and of its children that have ended. */
export async function cpuTimes(
  pid: number,
): Promise<{ readonly own: number; readonly endedChildren: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The command name may hold spaces, so the fields are counted from its closing parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (first: number) =>
    (Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond;
  return { own: seconds(11), endedChildren: seconds(13) };
}

/**
 * Returns the CPU time of the calling thread. It does not include the time of other processes, so
 * it is a good measure on a busy machine.
 */
export function threadCpuMs(): number {
  return threadTimesMs().cpuMs;
}

/**
 * Returns how long the calling thread has waited for a core so far. The kernel counts a wait when
 * it ends, so this is exact at any moment, whereas the CPU time lags by up to 4 ms.
 */
export function threadWaitMs(): number {
  return threadTimesMs().waitMs;
}

function threadTimesMs(): { readonly cpuMs: number; readonly waitMs: number } {
  const [cpuNs = '0', waitNs = '0'] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(
    ' ',
  );
  return { cpuMs: Number(cpuNs) / 1e6, waitMs: Number(waitNs) / 1e6 };
}

export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}

export type ProcessMemory = {
  readonly name: string;
  readonly residentMb: number;
  /** The proportional set size: a page that several processes share counts in part for each. */
  readonly proportionalMb: number;
  readonly peakMb: number;
};

export async function memoryOf(pid: number): Promise<ProcessMemory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return {
    name: /^Name:\s+(.*)$/m.exec(status)?.[1] ?? String(pid),
    residentMb: megabytes(rollup, 'Rss'),
    proportionalMb: megabytes(rollup, 'Pss'),
    peakMb: megabytes(status, 'VmHWM'),
  };
}

function megabytes(text: string, member: string): number {
  return Number(new RegExp(`^${member}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024;
}

/** Returns the process and all its descendants. */
export async function processTree(pid: number): Promise<readonly number[]> {
  const children: number[] = [];
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const text = await readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '');
    children.push(...text.split(' ').filter(Boolean).map(Number));
  }
  const below = await Promise.all(children.map(processTree));
  return [pid, ...below.flat()];
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
