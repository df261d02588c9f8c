// The CPU time of each part of a cluster, read from /proc (Linux). The parts are this process and
// its descendants, classified by their command line, and the rest of the machine.

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { commandOf, processesUnder, ticksPerSecond } from '../../support/process-tree.ts';

export const parts = [
  'gateways',
  'SIP engine',
  'PostgreSQL',
  'nats-server',
  'dialer, callees, receiver',
  'everything else on the machine',
] as const;
type Part = (typeof parts)[number];
/** CPU time in seconds. */
export type CpuByPart = Readonly<Record<Part, number>>;

export function cpuByPart(): CpuByPart {
  const seconds = Object.fromEntries(parts.map((part) => [part, 0])) as Record<Part, number>;
  let clusterSeconds = 0;
  for (const { pid, stat } of processesUnder(process.pid)) {
    const part = partOf(pid);
    if (part === undefined) continue;
    const used = stat.used + (part === 'PostgreSQL' ? stat.usedByEnded : 0);
    seconds[part] += used / ticksPerSecond;
    clusterSeconds += used / ticksPerSecond;
  }
  seconds['everything else on the machine'] = machineSeconds() - clusterSeconds;
  return seconds;
}

/** Returns the CPU use between two readings that are `seconds` apart, in percent of one core. */
export function coreShare(before: CpuByPart, after: CpuByPart, seconds: number): CpuByPart {
  const share = (part: Part) => ((after[part] - before[part]) / seconds) * 100;
  return Object.fromEntries(parts.map((part) => [part, share(part)])) as CpuByPart;
}

export const cores = availableParallelism();

function partOf(pid: number): Part | undefined {
  if (pid === process.pid) return 'dialer, callees, receiver';
  const command = commandOf(pid);
  if (command.includes('dist/main.js')) return 'gateways';
  if (command.includes('sip-engine')) return 'SIP engine';
  if (command.includes('nats-server')) return 'nats-server';
  return /^\S*postgres\b/.test(command) ? 'PostgreSQL' : undefined;
}

function machineSeconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, soft = 0, stolen = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + interrupts + soft + stolen) / ticksPerSecond;
}
