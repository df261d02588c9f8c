// Reads a process's descendants and the CPU time of processes and threads from /proc (Linux only).

import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ: 100 on every Linux that Node runs on. */
export const ticksPerSecond = 100;

type Stat = {
  readonly parent: number;
  /** User and system time of the process itself, in ticks. */
  readonly used: number;
  /** User and system time of its children that have ended, in ticks. */
  readonly usedByEnded: number;
};
export type ProcessStat = { readonly pid: number; readonly stat: Stat };

/** Returns `root` and its descendants. */
export function processesUnder(root: number): readonly ProcessStat[] {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(`/proc/${name}/stat`) : undefined;
    if (stat !== undefined) stats.set(Number(name), stat);
  }
  const isUnder = (pid: number): boolean => {
    if (pid === root) return true;
    const parent = stats.get(pid)?.parent ?? 0;
    return parent > 1 && isUnder(parent);
  };
  return [...stats].filter(([pid]) => isUnder(pid)).map(([pid, stat]) => ({ pid, stat }));
}

/**
 * Returns each thread's CPU time in seconds, by thread id. Threads that have ended are missing
 * here, but the process's own figure includes them.
 */
export function threadSeconds(pid: number): ReadonlyMap<number, number> {
  const seconds = new Map<number, number>();
  for (const name of readdirSync(`/proc/${pid}/task`)) {
    const stat = statOf(`/proc/${pid}/task/${name}/stat`);
    if (stat !== undefined) seconds.set(Number(name), stat.used / ticksPerSecond);
  }
  return seconds;
}

/** Returns how often each thread began to wait, by thread id. */
export function threadWakes(pid: number): ReadonlyMap<number, number> {
  const wakes = new Map<number, number>();
  for (const name of readdirSync(`/proc/${pid}/task`)) {
    const status = readText(`/proc/${pid}/task/${name}/status`) ?? '';
    const count = /^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1];
    if (count !== undefined) wakes.set(Number(name), Number(count));
  }
  return wakes;
}

export function commandOf(pid: number): string {
  return readText(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ') ?? '';
}

/** @returns undefined if the process or thread has just ended */
function statOf(path: string): Stat | undefined {
  const text = readText(path);
  if (text === undefined) return undefined;
  // The command name may contain spaces, so we only count the fields after its closing parenthesis.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const sum = (...indexes: readonly number[]) =>
    indexes.reduce((total, index) => total + Number(fields[index]), 0);
  return { parent: Number(fields[1]), used: sum(11, 12), usedByEnded: sum(13, 14) };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
